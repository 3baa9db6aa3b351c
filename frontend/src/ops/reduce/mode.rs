//! The most frequent element.

use crate::error::{Result, called};
use crate::tensor::Int;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::error::Error;

impl Tensor {
    /// The most frequent element along `dim`, the smallest one of several, and the index of its last occurrence, which gets its
    /// gradient. Each NaN is distinct. Sorts all elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (values, indices) = Tensor::new([[5, 2, 5, 2], [7, 8, 9, 9]])?.mode(1)?;
    /// assert_eq!((values.to_vec::<i32>()?, indices.to_vec::<i64>()?), (vec![2, 9], vec![3, 3]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or of size 0.
    pub fn mode(&self, dim: impl Int) -> Result<(Tensor, Tensor)> {
        modes(self, dim.to_i64(), false)
    }

    /// [`Tensor::mode`] with the reduced dimension retained with size 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([[1, 5, 5]])?.mode_keepdim(1)?.0.to_vec2::<i32>()?, [[5]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn mode_keepdim(&self, dim: impl Int) -> Result<(Tensor, Tensor)> {
        modes(self, dim.to_i64(), true)
    }
}

fn modes(t: &Tensor, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
    const NAME: &str = "mode";
    called(NAME, &["self", "dim"], || {
        let dim = wrap_dim(NAME, dim, t.rank())?;
        if t.rank() == 0 {
            return Ok((t.copy()?, Tensor::zeros_with((), (DType::I64, t.device()))?));
        }
        let n = t.dim(dim)?;
        if n == 0 {
            let expected = "not empty in the dimension that is reduced".to_string();
            return Err(Error::Shape { op: NAME, argument: "self", expected, got: t.shape().into() }.into());
        }
        let (sorted, indices) = t.detach().sort_with(dim, false, true)?;
        let mut sizes = vec![1; t.rank() - dim];
        sizes[0] = n;
        let position = Tensor::arange_with(0, n as i64, 1, (DType::I64, t.device()))?.reshape(&sizes)?;
        // The position of the first element of a run of equal ones, and 0 elsewhere, so that the maximum of those before is the
        // begin of the run of each element.
        let before = sorted.narrow(dim, 0, n - 1)?;
        let new = sorted.narrow(dim, 1, n - 1)?.ne(&before)?;
        let begins = new.where_cond(&position.narrow(0, 1, n - 1)?, 0)?;
        let begins = Tensor::cat(&[indices.narrow(dim, 0, 1)?.zeros_like()?, begins], dim)?.cummax(dim)?.0;
        // The first maximum is the end of the run of the smallest value.
        let (_, last) = position.sub(&begins)?.max_keepdim(dim)?;
        let index = indices.gather(dim, &last)?;
        let value = t.gather(dim, &index)?;
        if keepdim { Ok((value, index)) } else { Ok((value.squeeze(dim)?, index.squeeze(dim)?)) }
    })
}
