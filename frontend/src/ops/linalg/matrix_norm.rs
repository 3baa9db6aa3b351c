//! Norms of matrices, and what follows from singular values.

use super::matrix::cutoff;
use crate::error::{Result, called};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Error;

/// The norm of a matrix.
///
/// ```
/// use keyway::ops::linalg::MatrixNorm;
/// assert_eq!(MatrixNorm::from(2.0), MatrixNorm::P(2.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MatrixNorm {
    /// The root of the sum of the squares.
    Frobenius,
    /// The sum of the singular values.
    Nuclear,
    /// 2: the largest singular value, 1: the largest sum of magnitudes of a column, infinity: that of a row; the smallest ones
    /// for -2, -1 and minus infinity.
    P(f64),
}

impl From<f64> for MatrixNorm {
    fn from(p: f64) -> MatrixNorm {
        MatrixNorm::P(p)
    }
}

impl Tensor {
    /// The Frobenius norm of each matrix, `[.., m, n]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([[3.0f32, 0.0], [0.0, 4.0]])?.matrix_norm()?.item::<f32>()?, 5.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of fewer than two dimensions; another dtype than a float.
    #[doc(alias = "linalg_matrix_norm")]
    pub fn matrix_norm(&self) -> Result<Tensor> {
        self.matrix_norm_with(MatrixNorm::Frobenius)
    }

    /// [`Tensor::matrix_norm`] by another [`MatrixNorm`]; a number is a [`MatrixNorm::P`]. Those of singular values are of f32 and
    /// f64, by the library `keyway-linalg`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[1.0f32, -2.0], [3.0, 4.0]])?;
    /// assert_eq!(a.matrix_norm_with(1.0)?.item::<f32>()?, 6.0);
    /// assert_eq!(a.matrix_norm_with(f64::INFINITY)?.item::<f32>()?, 7.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; another number than 1, 2, infinity and their negatives; the maximum of no elements.
    pub fn matrix_norm_with(&self, ord: impl Into<MatrixNorm>) -> Result<Tensor> {
        called("matrix_norm", &["self", "ord"], || {
            if self.rank() < 2 {
                let (expected, got) = ("a matrix or a batch of matrices".to_string(), self.shape().into());
                return Err(Error::Shape { op: "matrix_norm", argument: "self", expected, got }.into());
            }
            let sums = |dim: i64| {
                // The dimension that remains is the last one.
                self.abs()?.sum(dim)
            };
            match ord.into() {
                MatrixNorm::Frobenius => self.norm_with(2.0, [-2, -1], false),
                MatrixNorm::Nuclear => self.svdvals()?.sum(-1),
                MatrixNorm::P(p) if p == f64::INFINITY => sums(-1)?.amax(-1),
                MatrixNorm::P(p) if p == f64::NEG_INFINITY => sums(-1)?.amin(-1),
                MatrixNorm::P(1.0) => sums(-2)?.amax(-1),
                MatrixNorm::P(-1.0) => sums(-2)?.amin(-1),
                MatrixNorm::P(2.0) => self.svdvals()?.amax(-1),
                MatrixNorm::P(-2.0) => self.svdvals()?.amin(-1),
                MatrixNorm::P(p) => {
                    let expected = "1, 2, infinity, or the negative of one".to_string();
                    let got = p.to_string();
                    Err(Error::Value { op: "matrix_norm", argument: "ord", expected, got }.into())
                }
            }
        })
    }

    /// The condition number of each matrix, `[.., m, n]` of f32, f64, c64 or c128: the ratio of its largest singular value to its smallest
    /// one, infinity for a matrix of lower rank, NaN for one of zeros.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[1.0f64, 0.0], [0.0, 4.0]])?;
    /// assert_eq!(a.cond()?.round()?.item::<f64>()?, 4.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::svdvals`]; an empty matrix.
    #[doc(alias = "linalg_cond")]
    pub fn cond(&self) -> Result<Tensor> {
        called("cond", &["self"], || {
            let values = self.svdvals()?;
            values.amax(-1)?.div(&values.amin(-1)?)
        })
    }

    /// [`Tensor::cond`] by another [`MatrixNorm`] of square matrices: the norm of the matrix times that of its inverse.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[1.0f64, 0.0], [0.0, 4.0]])?;
    /// assert_eq!(a.cond_with(1.0)?.item::<f64>()?, 4.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::inv`] and [`Tensor::matrix_norm_with`].
    pub fn cond_with(&self, ord: impl Into<MatrixNorm>) -> Result<Tensor> {
        called("cond", &["self", "ord"], || {
            let ord = ord.into();
            self.matrix_norm_with(ord)?.mul(&self.inv()?.matrix_norm_with(ord)?)
        })
    }

    /// The rank of each matrix, `[.., m, n]` of f32, f64, c64 or c128, as i64: the number of singular values above `max(m, n) * eps` times the
    /// largest one, where `eps` is that of the dtype.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[1.0f32, 2.0], [2.0, 4.0]])?;
    /// assert_eq!(a.matrix_rank()?.item::<i64>()?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::svdvals`].
    #[doc(alias = "linalg_matrix_rank")]
    pub fn matrix_rank(&self) -> Result<Tensor> {
        rank(self, None, None)
    }

    /// [`Tensor::matrix_rank`]: the number of singular values above `max(atol, rtol * largest)`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[1.0f32, 0.0], [0.0, 4.0]])?;
    /// assert_eq!(a.matrix_rank_with(2.0, 0.0)?.item::<i64>()?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn matrix_rank_with(&self, atol: f64, rtol: f64) -> Result<Tensor> {
        rank(self, Some(atol), Some(rtol))
    }
}

fn rank(a: &Tensor, atol: Option<f64>, rtol: Option<f64>) -> Result<Tensor> {
    called("matrix_rank", &["self"], || {
        let values = a.detach().svdvals()?;
        values.gt(&cutoff(a, &values, atol, rtol)?)?.to_dtype(DType::I64)?.sum(-1)
    })
}
