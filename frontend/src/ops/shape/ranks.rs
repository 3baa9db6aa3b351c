//! Tensors of a least rank, and of a common shape.

use super::joined::grown;
use crate::Tensor;
use crate::error::{Result, called};
use crate::tensor::IntoShape;
use crate::tensor::shape::sizes;
use keyway_dispatcher::dims::{Dims, broadcast};
use std::borrow::Borrow;

impl Tensor {
    /// This tensor, or a view of one dimension if it has none.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new(7)?.atleast_1d()?.shape(), [1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::unsqueeze`].
    pub fn atleast_1d(&self) -> Result<Tensor> {
        called("atleast_1d", &["self"], || grown(self.clone(), 1))
    }

    /// This tensor, or a view of two dimensions if it has fewer: a vector is a row.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([7, 8])?.atleast_2d()?.shape(), [1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::unsqueeze`].
    pub fn atleast_2d(&self) -> Result<Tensor> {
        called("atleast_2d", &["self"], || grown(self.clone(), 2))
    }

    /// This tensor, or a view of three dimensions if it has fewer: a vector is a row, and a matrix has depth 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([7, 8])?.atleast_3d()?.shape(), [1, 2, 1]);
    /// assert_eq!(Tensor::new([[7, 8]])?.atleast_3d()?.shape(), [1, 2, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::unsqueeze`].
    pub fn atleast_3d(&self) -> Result<Tensor> {
        called("atleast_3d", &["self"], || grown(self.clone(), 3))
    }

    /// Views of the tensors in the shape to which all broadcast.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([[1], [2]])?, Tensor::new([3, 4, 5])?);
    /// let made = Tensor::broadcast_tensors(&[&a, &b])?;
    /// assert_eq!((made[0].shape(), made[1].shape()), (&[2, 3][..], &[2, 3][..]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast.
    #[doc(alias = "broadcast_arrays")]
    pub fn broadcast_tensors<T: Borrow<Tensor>>(tensors: &[T]) -> Result<Vec<Tensor>> {
        const NAME: &str = "broadcast_tensors";
        called(NAME, &["tensors"], || {
            let shape =
                tensors.iter().try_fold(Dims::new(), |all, t| broadcast(NAME, &all, t.borrow().shape()))?;
            tensors.iter().map(|t| t.borrow().expand(&shape[..])).collect()
        })
    }

    /// The shape to which both broadcast.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::broadcast_shapes((2, 1), 3)?, [2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast; a negative size.
    pub fn broadcast_shapes(first: impl IntoShape, second: impl IntoShape) -> Result<Vec<usize>> {
        const NAME: &str = "broadcast_shapes";
        called(NAME, &["first", "second"], || {
            Ok(broadcast(NAME, &sizes(NAME, first)?, &sizes(NAME, second)?)?.to_vec())
        })
    }
}
