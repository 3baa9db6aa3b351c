//! `isfinite`

use crate::ops::def::{Derivative, Forms, OpDef};
use crate::ops::{forms, rules};

forms! {
    /// Whether each element is neither infinite nor NaN. Always true for integers.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1.0f32, f32::INFINITY])?;
    /// assert_eq!(a.isfinite()?.to_vec::<bool>()?, [true, false]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn isfinite(&self);
}

/// `isfinite`
pub static DEF: OpDef =
    OpDef::unary("isfinite(Tensor self) -> Tensor", rules::predicate, Derivative::NotDifferentiable)
        .forms(Forms::New);
