//! `minimum`

use super::derived;
use super::rival;
use crate::ops::def::OpDef;
use crate::ops::forms;
use keyway_dispatcher::op::Arg;

forms! {
    /// The element-wise minimum of `self` and `other`, broadcast and promoted. NaN propagates. Equal elements get half of the
    /// gradient each.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1i64, 3])?.minimum(2)?.to_vec::<i64>()?, [1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    #[doc(alias = "broadcast_minimum")]
    pub fn minimum<'a>(&'a self, other: impl Into<Arg<'a>>), out: minimum_out;
}

/// `minimum`
pub static DEF: OpDef = rival::def("minimum(Tensor self, Tensor other) -> Tensor", |b, g| {
    rival::derivative(b, g, &super::gt::DEF)
})
.decomposed(derived::MINIMUM);
