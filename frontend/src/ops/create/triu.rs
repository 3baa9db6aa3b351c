//! `triu`

use super::triangle;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::forms;
use crate::tensor::Int;
use keyway_dispatcher::op::Arg;

forms! {
    /// The upper triangle of each matrix: the elements on and above the diagonal, 0 elsewhere.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1i32, 2, 3, 4], (2, 2))?;
    /// assert_eq!(a.triu()?.to_vec::<i32>()?, [1, 2, 0, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of fewer than 2 dimensions.
    pub fn triu(&self), defaults: [Arg::Int(0)], in_place: triu_, on: [1.5, 2.5];

    /// [`Tensor::triu`](crate::Tensor::triu) for another diagonal: 0 is the main one, 1 the one above it.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[1, 2], [3, 4]])?;
    /// assert_eq!(a.triu_with(1)?.to_vec::<i32>()?, [0, 2, 0, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn triu_with(&self, diagonal: impl Int), in_place: triu_with_ {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::Tensor;
        /// let a = Tensor::new([[1, 2], [3, 4]])?;
        /// a.triu_with_(1)?;
        /// assert_eq!(a.to_vec::<i32>()?, [0, 2, 0, 0]);
        /// # Ok(()) }
        /// ```
    };
}

/// `triu`
pub static DEF: OpDef = triangle::def(
    "triu(Tensor self, int diagonal=0) -> Tensor",
    Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.triu_with(b.int(1)?))),
    |args| triangle::masked(args, |row, column| column >= row),
)
.with(OpFlags::COMPLEX);
