//! `cos`

use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules, sample};

forms! {
    /// The cosine of each element, in radians. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32])?.cos()?.to_vec::<f32>()?, [1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn cos(&self), in_place: cos_, out: cos_out;
}

/// `cos`
pub static DEF: OpDef = OpDef::unary(
    "cos(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.mul(&b.input(0)?.sin()?.neg()?))),
)
.samples(|| sample::unary(-4.0, 4.0))
.with(OpFlags::HOLOMORPHIC);
