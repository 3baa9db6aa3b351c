//! `tanh`

use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules};

forms! {
    /// The hyperbolic tangent of each element. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32, 100.0])?.tanh()?.to_vec::<f32>()?, [0.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn tanh(&self), in_place: tanh_, out: tanh_out;
}

/// `tanh`
pub static DEF: OpDef = OpDef::unary(
    "tanh(Tensor self) -> Tensor",
    rules::unary_float,
    // From the input: an output rounded to 1 would give a gradient of 0.
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.tanh_backward(&b.input(0)?))),
)
.with(OpFlags::ZERO_PRESERVING)
.with(OpFlags::HOLOMORPHIC);
