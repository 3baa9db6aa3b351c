//! `exp`

use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules};

forms! {
    /// `e` to the power of each element. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32])?.exp()?.to_vec::<f32>()?, [1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn exp(&self), in_place: exp_, out: exp_out;
}

/// `exp`
pub static DEF: OpDef = OpDef::unary(
    "exp(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_output(|b, g| g.set(0, || b.grad(0)?.mul(&b.output(0)?))),
)
.with(OpFlags::AUTOCAST_F32)
.with(OpFlags::HOLOMORPHIC);
