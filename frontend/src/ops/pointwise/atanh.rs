//! `atanh`

use crate::ops::composite::widened;
use crate::ops::def::{Derivative, Facts, OpDef};
use crate::ops::{forms, rules, sample};

forms! {
    /// The inverse hyperbolic tangent of each element; NaN beyond 1. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32])?.atanh()?.to_vec::<f32>()?, [0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    #[doc(alias = "arctanh")]
    pub fn atanh(&self), in_place: atanh_, out: atanh_out, on: 0.5;
}

/// `atanh`
pub static DEF: OpDef = OpDef::unary(
    "atanh(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| {
        // Near 1 and -1 the differences are exact, where `1 - x^2` has lost its digits.
        g.set(0, || {
            let x = widened(&b.input(0)?)?;
            b.grad(0)?.div(&x.rsub(1)?.mul(&x.add(1)?)?)
        })
    }),
)
.samples(|| sample::unary(-0.8, 0.8))
.with(Facts::KEEPS_ZERO);
