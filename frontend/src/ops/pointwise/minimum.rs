//! `minimum`

use super::derived;
use super::rival;
use crate::ops::def::OpDef;
use crate::ops::forms;
use keyway_dispatcher::op::Arg;

forms! {
    /// The smaller of `self` and `other`, element by element, broadcast and promoted. NaN if either is.
    /// Where both are equal each takes half of the gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1i64, 3])?.minimum(2)?.to_vec::<i64>()?, [1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes that have no common one, tensors on different devices.
    #[doc(alias = "broadcast_minimum")]
    pub fn minimum<'a>(&'a self, other: impl Into<Arg<'a>>), out: minimum_out;
}

/// `minimum`
pub static DEF: OpDef = rival::def("minimum(Tensor self, Tensor other) -> Tensor", |b, g| {
    rival::derivative(b, g, &super::gt::DEF)
})
.decomposed(derived::MINIMUM);
