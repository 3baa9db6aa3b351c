//! `maximum`

use super::rival;
use crate::ops::def::OpDef;
use crate::ops::forms;
use keyway_dispatcher::op::Arg;

forms! {
    /// The larger of `self` and `other`, element by element, broadcast and promoted. NaN if either is.
    /// Where both are equal each takes half of the gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1i64, 3])?.maximum(2)?.to_vec::<i64>()?, [2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes that have no common one, tensors on different devices.
    #[doc(alias = "broadcast_maximum")]
    pub fn maximum<'a>(&'a self, other: impl Into<Arg<'a>>), out: maximum_out;
}

/// `maximum`
pub static DEF: OpDef = rival::def("maximum(Tensor self, Tensor other) -> Tensor", |b, g| {
    rival::derivative(b, g, &super::lt::DEF)
});
