//! `acosh`

use crate::ops::composite::widened;
use crate::ops::def::{Derivative, OpDef, OpFlags};
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
    /// Errors of the backend.
    #[doc(alias = "arccosh")]
    pub fn acosh(&self), in_place: acosh_, out: acosh_out;
}

/// `acosh`
pub static DEF: OpDef = OpDef::unary(
    "acosh(Tensor self) -> Tensor",
    rules::unary_float,
    // A product of two roots, since the square of a large element overflows, and `x^2 - 1` cancels near 1.
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || {
            let x = widened(&b.input(0)?)?;
            b.grad(0)?.mul(&x.sub(1)?.rsqrt()?)?.mul(&x.add(1)?.rsqrt()?)
        })
    }),
)
.samples(|| sample::unary(1.5, 4.0))
.with(OpFlags::HOLOMORPHIC);
