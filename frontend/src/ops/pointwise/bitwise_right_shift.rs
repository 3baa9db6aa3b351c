//! `bitwise_right_shift`

use super::bitwise;
use crate::ops::def::OpDef;
use crate::ops::forms;
use keyway_dispatcher::op::Arg;

forms! {
    /// `self / 2^other`, rounded down; all bits are shifted out where `other` is negative or not less than the number of bits.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([5i64, 12])?.bitwise_right_shift(2)?.to_vec::<i64>()?, [1, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Floats and bool; shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    pub fn bitwise_right_shift<'a>(&'a self, other: impl Into<Arg<'a>>), in_place: bitwise_right_shift_, on: 6;
}

/// `bitwise_right_shift`
pub static DEF: OpDef = bitwise::shift("bitwise_right_shift(Tensor self, Tensor other) -> Tensor");
