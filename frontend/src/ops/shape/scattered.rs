//! Copies with a view replaced.

use crate::Tensor;
use crate::error::{Result, called};
use crate::tensor::Int;

impl Tensor {
    /// A copy with the slice `start..end` in steps of `step` along `dim` replaced by `src`; see [`Tensor::slice`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3, 4])?;
    /// let made = a.slice_scatter(&Tensor::new([8, 9])?, 0, Some(1), None, 2)?;
    /// assert_eq!(made.to_vec::<i32>()?, [1, 8, 3, 9]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::slice`]; a shape that does not broadcast to the slice.
    pub fn slice_scatter(
        &self,
        src: &Tensor,
        dim: impl Int,
        start: Option<i64>,
        end: Option<i64>,
        step: impl Int,
    ) -> Result<Tensor> {
        called("slice_scatter", &["self", "src", "dim", "start", "end", "step"], || {
            let made = self.copy()?;
            made.slice(dim, start, end, step)?.copy_(src)?;
            Ok(made)
        })
    }

    /// A copy with the main diagonal of the first two dimensions replaced by `src`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[1, 2], [3, 4]])?;
    /// assert_eq!(a.diagonal_scatter(&Tensor::new([8, 9])?)?.to_vec::<i32>()?, [8, 2, 3, 9]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::diagonal`]; a shape that does not broadcast to the diagonal.
    pub fn diagonal_scatter(&self, src: &Tensor) -> Result<Tensor> {
        self.diagonal_scatter_with(src, 0, 0, 1)
    }

    /// [`Tensor::diagonal_scatter`] for another diagonal of two dimensions; see [`Tensor::diagonal_with`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[1, 2], [3, 4]])?;
    /// assert_eq!(a.diagonal_scatter_with(&Tensor::new([8])?, 1, 0, 1)?.to_vec::<i32>()?, [1, 8, 3, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::diagonal_with`]; a shape that does not broadcast to the diagonal.
    pub fn diagonal_scatter_with(
        &self,
        src: &Tensor,
        offset: impl Int,
        dim1: impl Int,
        dim2: impl Int,
    ) -> Result<Tensor> {
        called("diagonal_scatter", &["self", "src", "offset", "dim1", "dim2"], || {
            let made = self.copy()?;
            made.diagonal_with(offset, dim1, dim2)?.copy_(src)?;
            Ok(made)
        })
    }
}
