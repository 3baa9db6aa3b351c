//! `bitwise_and`

use super::bitwise;
use crate::ops::def::OpDef;
use crate::ops::forms;
use keyway_dispatcher::op::Arg;

forms! {
    /// Bitwise and; for bool, logical and.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([5i64, 12])?.bitwise_and(6)?.to_vec::<i64>()?, [4, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Floats; shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    pub fn bitwise_and<'a>(&'a self, other: impl Into<Arg<'a>>), in_place: bitwise_and_, on: 6;
}

/// `bitwise_and`
pub static DEF: OpDef = bitwise::def("bitwise_and(Tensor self, Tensor other) -> Tensor");
