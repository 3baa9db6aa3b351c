//! `le`

use super::derived;
use crate::ops::def::{Derivative, Forms, OpDef};
use crate::ops::{forms, rules};
use keyway_dispatcher::op::Arg;

forms! {
    /// `self <= other` as bool, broadcast and promoted.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1i64, 2, 3])?.le(2)?.to_vec::<bool>()?, [true, true, false]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    #[doc(alias = "less_equal")]
    pub fn le<'a>(&'a self, other: impl Into<Arg<'a>>);
}

/// `le`
pub static DEF: OpDef =
    OpDef::binary("le(Tensor self, Tensor other) -> Tensor", rules::ordering, Derivative::NotDifferentiable)
        .forms(Forms::Out)
        .decomposed(derived::LE);
