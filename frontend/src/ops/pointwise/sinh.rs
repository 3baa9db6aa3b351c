//! `sinh`

use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules};

forms! {
    /// The hyperbolic sine of each element. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32])?.sinh()?.to_vec::<f32>()?, [0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn sinh(&self), in_place: sinh_, out: sinh_out;
}

/// `sinh`
pub static DEF: OpDef = OpDef::unary(
    "sinh(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.mul(&b.input(0)?.cosh()?))),
)
.with(OpFlags::ZERO_PRESERVING)
.with(OpFlags::AUTOCAST_F32)
.with(OpFlags::HOLOMORPHIC);
