//! `atanh`

use super::asin::one_less_square;
use crate::ops::composite::widened;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules, sample};

forms! {
    /// The inverse hyperbolic tangent of each element; NaN outside -1..=1. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32])?.atanh()?.to_vec::<f32>()?, [0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    #[doc(alias = "arctanh")]
    pub fn atanh(&self), in_place: atanh_, out: atanh_out, on: 0.5;
}

/// `atanh`
pub static DEF: OpDef = OpDef::unary(
    "atanh(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || b.grad(0)?.div(&one_less_square(&widened(&b.input(0)?)?)?))
    }),
)
.samples(|| sample::unary(-0.8, 0.8))
.with(OpFlags::ZERO_PRESERVING)
.with(OpFlags::HOLOMORPHIC);
