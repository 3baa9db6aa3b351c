//! `logical_xor`

use super::derived;
use super::logical;
use crate::ops::def::OpDef;
use crate::ops::forms;
use keyway_dispatcher::op::Arg;

forms! {
    /// Whether exactly one element is true, where every value but 0 is true; the result is bool.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([0.5f32, 0.0, 2.0])?, Tensor::new([true, false, false])?);
    /// assert_eq!(a.logical_xor(&b)?.to_vec::<bool>()?, [false, false, true]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, tensors on different devices.
    pub fn logical_xor<'a>(&'a self, other: impl Into<Arg<'a>>), in_place: logical_xor_;
}

/// `logical_xor`
pub static DEF: OpDef =
    logical::def("logical_xor(Tensor self, Tensor other) -> Tensor").decomposed(derived::LOGICAL_XOR);
