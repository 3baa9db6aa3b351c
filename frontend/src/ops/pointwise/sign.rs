//! `sign`

use super::derived;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::Fill;
use crate::ops::{forms, rules, sample};

forms! {
    /// The sign of each element: -1, 0 or 1; 0 for NaN.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([3.0f32, 0.0, -2.0])?.sign()?.to_vec::<f32>()?, [1.0, 0.0, -1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn sign(&self), in_place: sign_, out: sign_out, on: -1.5;
}

/// `sign`
pub static DEF: OpDef = OpDef::unary("sign(Tensor self) -> Tensor", rules::unary, Derivative::ZERO)
    .samples(|| sample::unary_of(&Fill::AwayFrom(-2.2, 2.2, 0.05), &[]))
    .with(OpFlags::EXACT)
    .decomposed(derived::SIGN)
    .with(OpFlags::ZERO_PRESERVING);
