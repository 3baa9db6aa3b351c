//! `erf`

use crate::ops::composite::widened;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules};

forms! {
    /// The error function of each element. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32, 10.0])?.erf()?.to_vec::<f32>()?, [0.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn erf(&self), in_place: erf_, out: erf_out;
}

/// `erf`
pub static DEF: OpDef = OpDef::unary(
    "erf(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || {
            let density = widened(&b.input(0)?)?.square()?.neg()?.exp()?;
            b.grad(0)?.mul(&density)?.mul(std::f64::consts::FRAC_2_SQRT_PI)
        })
    }),
)
.with(OpFlags::ZERO_PRESERVING);
