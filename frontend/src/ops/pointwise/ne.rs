//! `ne`

use super::derived;
use crate::ops::def::{Derivative, Forms, OpDef};
use crate::ops::{forms, rules};
use keyway_dispatcher::op::Arg;

forms! {
    /// `self != other` as bool, broadcast and promoted. NaN differs from everything.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1i64, 2, 3])?.ne(2)?.to_vec::<bool>()?, [true, false, true]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    #[doc(alias = "not_equal")]
    pub fn ne<'a>(&'a self, other: impl Into<Arg<'a>>);
}

/// `ne`
pub static DEF: OpDef = OpDef::binary(
    "ne(Tensor self, Tensor other) -> Tensor",
    rules::comparison,
    Derivative::NotDifferentiable,
)
.forms(Forms::Out)
.decomposed(derived::NE);
