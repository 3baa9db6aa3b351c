//! `expm1`

use crate::ops::composite::in_range;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules};

forms! {
    /// `e^x - 1` of each element `x`, accurate for small elements too. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f64, 1e-20])?.expm1()?.to_vec::<f64>()?, [0.0, 1e-20]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn expm1(&self), in_place: expm1_, out: expm1_out;
}

/// `expm1`
pub static DEF: OpDef = OpDef::unary(
    "expm1(Tensor self) -> Tensor",
    rules::unary_float,
    // From the input: an output rounded to -1 would give a gradient of 0.
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.mul(&in_range(&b.input(0)?)?.exp()?))),
)
.with(OpFlags::ZERO_PRESERVING)
.with(OpFlags::AUTOCAST_F32)
.with(OpFlags::HOLOMORPHIC);
