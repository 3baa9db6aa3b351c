//! `remainder`

use super::modulus;
use crate::ops::def::OpDef;
use crate::ops::forms;
use keyway_dispatcher::op::Arg;

forms! {
    /// The remainder of `self / other`, with the sign of `other`, as Python's `%`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-7i64, 7])?.remainder(3)?.to_vec::<i64>()?, [2, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An integer divided by zero; two bool operands; shapes that do not broadcast, dtypes without a
    /// common one, tensors on different devices.
    pub fn remainder<'a>(&'a self, other: impl Into<Arg<'a>>), in_place: remainder_;
}

/// `remainder`
pub static DEF: OpDef =
    modulus::def("remainder(Tensor self, Tensor other) -> Tensor", |b, g| modulus::derivative(b, g, "floor"));
