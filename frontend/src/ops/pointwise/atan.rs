//! `atan`

use super::asin::length_from_one;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules, sample};

forms! {
    /// The arc tangent of each element, in radians. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32])?.atan()?.to_vec::<f32>()?, [0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    #[doc(alias = "arctan")]
    pub fn atan(&self), in_place: atan_, out: atan_out;
}

/// `atan`
pub static DEF: OpDef = OpDef::unary(
    "atan(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| {
        // Divides twice by `sqrt(x^2 + 1)`, which does not overflow where `x^2` does.
        g.set(0, || {
            let length = length_from_one(&b.input(0)?)?;
            b.grad(0)?.div(&length)?.div(&length)
        })
    }),
)
.samples(|| sample::unary(-3.0, 3.0))
.with(OpFlags::ZERO_PRESERVING)
.with(OpFlags::HOLOMORPHIC);
