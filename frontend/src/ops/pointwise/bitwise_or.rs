//! `bitwise_or`

use super::bitwise;
use crate::ops::def::OpDef;
use crate::ops::forms;
use keyway_dispatcher::op::Arg;

forms! {
    /// Bitwise or; for bool, logical or.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([5i64, 12])?.bitwise_or(6)?.to_vec::<i64>()?, [7, 14]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Floats; shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    pub fn bitwise_or<'a>(&'a self, other: impl Into<Arg<'a>>), in_place: bitwise_or_, on: 6;
}

/// `bitwise_or`
pub static DEF: OpDef = bitwise::def("bitwise_or(Tensor self, Tensor other) -> Tensor");
