//! `eq`

use super::derived;
use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::def::{Derivative, Forms, OpDef};
use crate::ops::{forms, rules};
use keyway_dispatcher::op::Arg;

forms! {
    /// `self == other` as bool, broadcast and promoted. NaN does not equal anything.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1i64, 2, 3])?.eq(2)?.to_vec::<bool>()?, [false, true, false]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    #[doc(alias = "broadcast_eq")]
    pub fn eq<'a>(&'a self, other: impl Into<Arg<'a>>);
}

impl Tensor {
    /// Whether `other` has the same sizes and all elements are equal, in the promoted dtype. NaN does not equal anything. Waits
    /// for the device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1i64, 2])?;
    /// assert!(a.equal(&Tensor::new([1.0f32, 2.0])?)? && !a.equal(&Tensor::new(1i64)?)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Dtypes without a common one, tensors on different devices.
    #[doc(alias = "array_equal")]
    pub fn equal(&self, other: &Tensor) -> Result<bool> {
        called("equal", &["self", "other"], || {
            if self.shape() != other.shape() {
                return Ok(false);
            }
            self.eq(other)?.all(..)?.item::<bool>()
        })
    }
}

/// `eq`
pub static DEF: OpDef = OpDef::binary(
    "eq(Tensor self, Tensor other) -> Tensor",
    rules::comparison,
    Derivative::NotDifferentiable,
)
.forms(Forms::Out)
.decomposed(derived::EQ);
