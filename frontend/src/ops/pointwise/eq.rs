//! `eq`

use super::derived;
use crate::ops::def::{Derivative, Forms, OpDef};
use crate::ops::{forms, rules};
use keyway_dispatcher::op::Arg;

forms! {
    /// `self == other` as bool, broadcast and promoted. NaN equals nothing.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1i64, 2, 3])?.eq(2)?.to_vec::<bool>()?, [false, true, false]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes that have no common one, tensors on different devices.
    pub fn eq<'a>(&'a self, other: impl Into<Arg<'a>>);
}

/// `eq`
pub static DEF: OpDef = OpDef::binary(
    "eq(Tensor self, Tensor other) -> Tensor",
    rules::comparison,
    Derivative::NotDifferentiable,
)
.forms(Forms::Out)
.decomposed(derived::EQ);
