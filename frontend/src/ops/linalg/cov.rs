//! Covariance and correlation matrices.

use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::composite::{cast, centred, real};
use crate::ops::rules::float_of;
use crate::tensor::Int;
use keyway_dispatcher::error::Error;

impl Tensor {
    /// The covariance matrix `[n, n]` of `n` variables, the rows of `[n, observations]`, with Bessel's correction; the variance
    /// of a tensor of one dimension. The diagonal has the variances of [`Tensor::var`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[0.0f32, 1.0, 2.0], [2.0, 1.0, 0.0]])?;
    /// assert_eq!(x.cov()?.to_vec2::<f32>()?, [[1.0, -1.0], [-1.0, 1.0]]);
    /// # Ok(()) }
    /// ```
    ///
    /// Integers and bool are cast to the default float dtype; f16 and bf16 are computed in f32.
    ///
    /// # Errors
    /// More than two dimensions.
    pub fn cov(&self) -> Result<Tensor> {
        self.cov_with(1)
    }

    /// [`Tensor::cov`] with sums divided by the number of observations less `correction`, at least 0: the result is NaN or
    /// infinite if the divisor is 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1.0f32, 3.0])?.cov_with(0)?.item::<f32>()?, 1.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn cov_with(&self, correction: impl Int) -> Result<Tensor> {
        called("cov", &["self", "correction"], || {
            cast(covariance("cov", self, correction.to_i64())?, float_of(self.dtype()))
        })
    }

    /// The matrix `[n, n]` of Pearson's correlation coefficients of `n` variables, the rows of `[n, observations]`:
    /// [`Tensor::cov`] divided by the standard deviations of row and column, and clamped to -1..=1. 1 for a tensor of one
    /// dimension. The coefficients of a constant variable, and their gradients, are NaN.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[0.0f32, 1.0, 2.0], [4.0, 2.0, 0.0]])?;
    /// assert_eq!(x.corrcoef()?.to_vec2::<f32>()?, [[1.0, -1.0], [-1.0, 1.0]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::cov`].
    pub fn corrcoef(&self) -> Result<Tensor> {
        called("corrcoef", &["self"], || {
            let c = covariance("corrcoef", self, 1)?;
            let made = if c.rank() == 0 {
                c.div(&c)?
            } else {
                let deviation = c.diagonal()?.sqrt()?;
                c.div(&deviation.unsqueeze(1)?)?.div(&deviation)?.clamp(-1.0, 1.0)?
            };
            cast(made, float_of(self.dtype()))
        })
    }
}

/// The covariance in f32 at least.
fn covariance(op: &'static str, x: &Tensor, correction: i64) -> Result<Tensor> {
    if x.rank() > 2 {
        let (expected, got) = ("of 2 dimensions at most".to_string(), x.shape().into());
        return Err(Error::Shape { op, argument: "self", expected, got }.into());
    }
    let rows = if x.rank() == 2 { real(x)? } else { real(x)?.reshape((1, x.elem_count()))? };
    let apart = centred(&rows, &[1])?;
    let divisor = (rows.dim(1)? as i64).saturating_sub(correction).max(0);
    let made = apart.matmul(&apart.adjoint()?)?.div(divisor as f64)?;
    if x.rank() == 2 { Ok(made) } else { made.reshape(()) }
}
