//! `triu`

use super::triangle;
use crate::ops::def::{Derivative, OpDef};
use crate::ops::forms;

forms! {
    /// The upper triangle of each matrix: what lies on the diagonal and above it, 0 elsewhere. Diagonal 0 is the
    /// main one, 1 the one above it.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1i32, 2, 3, 4], (2, 2))?;
    /// assert_eq!(a.triu(0)?.to_vec::<i32>()?, [1, 2, 0, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of fewer than 2 dimensions.
    pub fn triu(&self, diagonal: i64), in_place: triu_ {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::Tensor;
        /// let a = Tensor::new([[1, 2], [3, 4]])?;
        /// a.triu_(0)?;
        /// assert_eq!(a.to_vec::<i32>()?, [1, 2, 0, 4]);
        /// # Ok(()) }
        /// ```
    };
}

/// `triu`
pub static DEF: OpDef = triangle::def(
    "triu(Tensor self, int diagonal=0) -> Tensor",
    Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.triu(b.int(1)?))),
    triangle::by_mask(|args| triangle::masked(args, |row, column| column >= row)),
);
