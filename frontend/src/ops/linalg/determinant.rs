//! Determinants, from the LU decomposition.

use super::matrix::checked_square;
use crate::error::{Result, called};
use crate::{DType, Tensor};

impl Tensor {
    /// The determinant of each square matrix, `[.., n, n]` of f32, f64, c64 or c128: that of a singular matrix is 0, that of an empty one 1.
    /// A large or small determinant leaves the range of the dtype, where [`Tensor::slogdet`] does not.
    ///
    /// The gradient needs a regular matrix: it is an error in the backward pass for a singular one. The kernels are those of the
    /// library `keyway-linalg`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[0.0f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(a.det()?.item::<f32>()?, -6.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square; another dtype.
    #[doc(alias = "linalg_det")]
    pub fn det(&self) -> Result<Tensor> {
        called("det", &["self"], || {
            let (parity, diagonal) = decomposed("det", self)?;
            diagonal.prod(-1)?.mul(&parity)
        })
    }

    /// The sign (-1, 0 or 1) of the determinant of each square matrix, `[.., n, n]` of f32, f64, c64 or c128, and the logarithm
    /// of its absolute value, which is real: 0 and minus infinity for a singular matrix. The sign of a complex determinant is
    /// `det / |det|`. The sign of a real one has no gradient; that of the logarithm is `A⁻ᴴ`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (sign, log) = Tensor::new([[0.0f32, 1.0], [1.0, 4.0]])?.slogdet()?;
    /// assert_eq!((sign.item::<f32>()?, log.item::<f32>()?), (-1.0, 0.0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::det`].
    #[doc(alias = "linalg_slogdet")]
    pub fn slogdet(&self) -> Result<(Tensor, Tensor)> {
        called("slogdet", &["self"], || {
            let (parity, diagonal) = decomposed("slogdet", self)?;
            let signs = if self.dtype().is_complex() { diagonal.sgn()? } else { diagonal.detach().sign()? };
            let sign = signs.prod(-1)?.mul(&parity)?;
            Ok((sign, diagonal.abs()?.log()?.sum(-1)?))
        })
    }

    /// The logarithm of the determinant of each square matrix, `[.., n, n]` of f32, f64, c64 or c128: minus infinity for a singular
    /// matrix, NaN for a negative determinant, as in PyTorch; the principal value for a complex one.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([[1.0f32, 5.0], [0.0, 1.0]])?.logdet()?.item::<f32>()?, 0.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::det`].
    pub fn logdet(&self) -> Result<Tensor> {
        called("logdet", &["self"], || {
            let (sign, log) = self.slogdet()?;
            match sign.dtype().is_complex() {
                true => sign.log()?.add(&log),
                false => log.masked_fill(&sign.lt(0)?, f64::NAN),
            }
        })
    }
}

/// The sign of the row exchanges (1 or -1), and the diagonal of `U`.
fn decomposed(op: &'static str, a: &Tensor) -> Result<(Tensor, Tensor)> {
    checked_square(op, a)?;
    let (lu, pivots) = a.lu_factor()?;
    let rows = Tensor::arange_with(1, pivots.dim(-1)? as i64 + 1, 1, (DType::I32, pivots.device()))?;
    let exchanges = pivots.ne(&rows)?.sum(-1)?;
    // 1 - 2 * (exchanges mod 2)
    let parity = exchanges.remainder(2)?.mul(-2)?.add(1)?.to_dtype(a.dtype().to_real())?;
    Ok((parity, lu.diagonal_with(0, -2, -1)?))
}
