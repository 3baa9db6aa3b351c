//! `isnan`

use super::derived;
use crate::ops::def::{Derivative, Forms, OpDef};
use crate::ops::{forms, rules};

forms! {
    /// Whether each element is NaN. Always false for integers.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1.0f32, f32::NAN])?.isnan()?.to_vec::<bool>()?, [false, true]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn isnan(&self);
}

/// `isnan`
pub static DEF: OpDef =
    OpDef::unary("isnan(Tensor self) -> Tensor", rules::predicate, Derivative::NotDifferentiable)
        .forms(Forms::New)
        .decomposed(derived::ISNAN);
