//! `logical_not`

use super::derived;
use crate::ops::def::{Derivative, OpDef};
use crate::ops::{forms, rules};

forms! {
    /// Whether each element is 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1.5f32, 0.0])?.logical_not()?.to_vec::<bool>()?, [false, true]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn logical_not(&self), in_place: logical_not_, out: logical_not_out, on: 0.0;
}

/// `logical_not`
pub static DEF: OpDef =
    OpDef::unary("logical_not(Tensor self) -> Tensor", rules::predicate, Derivative::NotDifferentiable)
        .decomposed(derived::LOGICAL_NOT);
