//! `sin`

use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules, sample};

forms! {
    /// The sine of each element, in radians. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32])?.sin()?.to_vec::<f32>()?, [0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn sin(&self), in_place: sin_, out: sin_out;
}

/// `sin`
pub static DEF: OpDef = OpDef::unary(
    "sin(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.mul(&b.input(0)?.cos()?))),
)
.samples(|| sample::unary(-4.0, 4.0))
.with(OpFlags::ZERO_PRESERVING)
.with(OpFlags::HOLOMORPHIC);
