//! `ge`

use crate::ops::def::{Derivative, Forms, OpDef};
use crate::ops::{forms, rules};
use keyway_dispatcher::op::Arg;

forms! {
    /// `self >= other` as bool, broadcast and promoted.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1i64, 2, 3])?.ge(2)?.to_vec::<bool>()?, [false, true, true]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    #[doc(alias = "greater_equal")]
    pub fn ge<'a>(&'a self, other: impl Into<Arg<'a>>);
}

/// `ge`
pub static DEF: OpDef =
    OpDef::binary("ge(Tensor self, Tensor other) -> Tensor", rules::ordering, Derivative::NotDifferentiable)
        .forms(Forms::Out);
