//! `logical_and`

use super::derived;
use super::logical;
use crate::ops::def::OpDef;
use crate::ops::forms;
use keyway_dispatcher::op::Arg;

forms! {
    /// Whether both elements are true, where every value but 0 is true; the result is bool.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([0.5f32, 0.0, 2.0])?, Tensor::new([true, false, false])?);
    /// assert_eq!(a.logical_and(&b)?.to_vec::<bool>()?, [true, false, false]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, tensors on different devices.
    pub fn logical_and<'a>(&'a self, other: impl Into<Arg<'a>>), in_place: logical_and_;
}

/// `logical_and`
pub static DEF: OpDef =
    logical::def("logical_and(Tensor self, Tensor other) -> Tensor").decomposed(derived::LOGICAL_AND);
