//! `isinf`

use crate::ops::def::{Derivative, Forms, OpDef};
use crate::ops::{forms, rules};

forms! {
    /// Whether each element is positive or negative infinity. Always false for integers.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1.0f32, f32::NEG_INFINITY])?;
    /// assert_eq!(a.isinf()?.to_vec::<bool>()?, [false, true]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn isinf(&self);
}

/// `isinf`
pub static DEF: OpDef =
    OpDef::unary("isinf(Tensor self) -> Tensor", rules::predicate, Derivative::NotDifferentiable)
        .forms(Forms::New);
