//! `sqrt`

use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules, sample};

forms! {
    /// The square root of each element; NaN below 0. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([4.0f32, 9.0])?.sqrt()?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn sqrt(&self), in_place: sqrt_, out: sqrt_out;
}

/// `sqrt`
pub static DEF: OpDef = OpDef::unary(
    "sqrt(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_output(|b, g| g.set(0, || b.grad(0)?.mul(0.5)?.div(&b.output(0)?))),
)
.samples(|| sample::unary(0.3, 3.0))
.with(OpFlags::SIGNED_ZEROS)
.with(OpFlags::ZERO_PRESERVING)
.with(OpFlags::HOLOMORPHIC);
