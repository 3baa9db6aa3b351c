//! `bitwise_xor`

use super::bitwise;
use crate::ops::def::OpDef;
use crate::ops::forms;
use keyway_dispatcher::op::Arg;

forms! {
    /// Bitwise exclusive or; for bool, whether the operands differ.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([5i64, 12])?.bitwise_xor(6)?.to_vec::<i64>()?, [3, 10]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Floats; shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    pub fn bitwise_xor<'a>(&'a self, other: impl Into<Arg<'a>>), in_place: bitwise_xor_, on: 6;
}

/// `bitwise_xor`
pub static DEF: OpDef = bitwise::def("bitwise_xor(Tensor self, Tensor other) -> Tensor");
