//! `log`

use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules, sample};

forms! {
    /// The natural logarithm of each element; minus infinity at 0, NaN below. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1.0f32, 0.0])?.log()?.to_vec::<f32>()?, [0.0, f32::NEG_INFINITY]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn log(&self), in_place: log_, out: log_out;
}

/// `log`
pub static DEF: OpDef = OpDef::unary(
    "log(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.div(&b.input(0)?))),
)
.samples(|| sample::unary(0.3, 3.0))
.with(OpFlags::AUTOCAST_F32)
.with(OpFlags::HOLOMORPHIC);
