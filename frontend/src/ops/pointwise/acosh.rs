//! `acosh`

use crate::ops::def::{Derivative, OpDef};
use crate::ops::{forms, rules, sample};

forms! {
    /// The inverse hyperbolic cosine of each element; NaN below 1. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1.0f32])?.acosh()?.to_vec::<f32>()?, [0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    #[doc(alias = "arccosh")]
    pub fn acosh(&self), in_place: acosh_, out: acosh_out;
}

/// `acosh`
pub static DEF: OpDef = OpDef::unary(
    "acosh(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.mul(&b.input(0)?.square()?.add(-1)?.rsqrt()?))),
)
.samples(|| sample::unary(1.5, 4.0));
