//! `cosh`

use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules};

forms! {
    /// The hyperbolic cosine of each element. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32])?.cosh()?.to_vec::<f32>()?, [1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn cosh(&self), in_place: cosh_, out: cosh_out;
}

/// `cosh`
pub static DEF: OpDef = OpDef::unary(
    "cosh(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.mul(&b.input(0)?.sinh()?))),
)
.with(OpFlags::AUTOCAST_F32)
.with(OpFlags::HOLOMORPHIC);
