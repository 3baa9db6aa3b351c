//! `log1p`

use super::derived;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules, sample};

forms! {
    /// `log(1 + x)` of each element `x`, accurate for small elements too. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f64, 1e-20])?.log1p()?.to_vec::<f64>()?, [0.0, 1e-20]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn log1p(&self), in_place: log1p_, out: log1p_out;
}

/// `log1p`
pub static DEF: OpDef = OpDef::unary(
    "log1p(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.div(&b.input(0)?.add(1)?))),
)
.samples(|| sample::unary(-0.7, 3.0))
.decomposed(derived::LOG1P)
.with(OpFlags::ZERO_PRESERVING)
.with(OpFlags::AUTOCAST_F32)
.with(OpFlags::HOLOMORPHIC);
