//! `acos`

use super::asin::inverse_slope;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules, sample};

forms! {
    /// The arc cosine of each element, in radians; NaN outside -1..=1. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1.0f32])?.acos()?.to_vec::<f32>()?, [0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    #[doc(alias = "arccos")]
    pub fn acos(&self), in_place: acos_, out: acos_out, on: 0.5;
}

/// `acos`
pub static DEF: OpDef = OpDef::unary(
    "acos(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.mul(&inverse_slope(&b.input(0)?)?)?.neg())),
)
.samples(|| sample::unary(-0.8, 0.8))
.with(OpFlags::AUTOCAST_F32)
.with(OpFlags::HOLOMORPHIC);
