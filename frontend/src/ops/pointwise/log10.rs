//! `log10`

use crate::ops::composite::in_range;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules, sample};

forms! {
    /// The logarithm to base 10 of each element; minus infinity at 0, NaN below. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([100.0f32, 1.0])?.log10()?.to_vec::<f32>()?, [2.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn log10(&self), in_place: log10_, out: log10_out;
}

/// `log10`
pub static DEF: OpDef = OpDef::unary(
    "log10(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || in_range(b.grad(0)?)?.mul(std::f64::consts::LOG10_E)?.div(&b.input(0)?))
    }),
)
.samples(|| sample::unary(0.3, 3.0))
.with(OpFlags::AUTOCAST_F32)
.with(OpFlags::HOLOMORPHIC);
