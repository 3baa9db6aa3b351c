//! `log2`

use crate::ops::composite::in_range;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules, sample};

forms! {
    /// The logarithm to base 2 of each element; minus infinity at 0, NaN below. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([8.0f32, 0.5])?.log2()?.to_vec::<f32>()?, [3.0, -1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn log2(&self), in_place: log2_, out: log2_out;
}

/// `log2`
pub static DEF: OpDef = OpDef::unary(
    "log2(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || in_range(b.grad(0)?)?.div(&b.input(0)?)?.mul(std::f64::consts::LOG2_E))
    }),
)
.samples(|| sample::unary(0.3, 3.0))
.with(OpFlags::AUTOCAST_F32)
.with(OpFlags::HOLOMORPHIC);
