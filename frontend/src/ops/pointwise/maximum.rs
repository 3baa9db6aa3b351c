//! `maximum`

use super::rival;
use crate::ops::def::OpDef;
use crate::ops::forms;
use keyway_dispatcher::op::Arg;

forms! {
    /// The element-wise maximum of `self` and `other`, broadcast and promoted. NaN propagates. Equal elements get half of the
    /// gradient each.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1i64, 3])?.maximum(2)?.to_vec::<i64>()?, [2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    #[doc(alias = "broadcast_maximum")]
    pub fn maximum<'a>(&'a self, other: impl Into<Arg<'a>>), out: maximum_out;
}

/// `maximum`
pub static DEF: OpDef = rival::def("maximum(Tensor self, Tensor other) -> Tensor", |b, g| {
    rival::derivative(b, g, &super::lt::DEF)
});
