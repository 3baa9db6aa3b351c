//! Systems with a Cholesky factor.

use super::matrix::h;
use super::solve_triangular::solved;
use crate::Tensor;
use crate::error::{Result, called_as};

impl Tensor {
    /// The solution `X` of `A X = B` for `B` (`self`, `[.., n, k]`) and the Cholesky factor of `A` (`[.., n, n]`), the lower one of
    /// [`Tensor::cholesky`] unless `upper`. Leading dimensions broadcast. The argument order is PyTorch's.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let factor = Tensor::new([[4.0f32, 2.0], [2.0, 10.0]])?.cholesky()?;
    /// let b = Tensor::new([[6.0f32], [12.0]])?;
    /// assert_eq!(b.cholesky_solve(&factor, false)?.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::solve_triangular`].
    pub fn cholesky_solve(&self, factor: &Tensor, upper: bool) -> Result<Tensor> {
        called_as("cholesky_solve", &["self", "factor"], &[("self", "factor"), ("b", "self")], || {
            let (first, second) =
                if upper { (h(factor)?, factor.clone()) } else { (factor.clone(), h(factor)?) };
            solved(&second, &solved(&first, self, [false, true, false])?, [true, true, false])
        })
    }

    /// The inverse of `A` from its Cholesky factor (`self`, `[.., n, n]`), the lower one of [`Tensor::cholesky`] unless `upper`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let factor = Tensor::new([[4.0f32, 0.0], [0.0, 16.0]])?.cholesky()?;
    /// assert_eq!(factor.cholesky_inverse(false)?.to_vec::<f32>()?, [0.25, 0.0, 0.0, 0.0625]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::solve_triangular`].
    pub fn cholesky_inverse(&self, upper: bool) -> Result<Tensor> {
        called_as("cholesky_inverse", &["self"], &[("factor", "self")], || {
            let n = self.dim(-1)?;
            Tensor::eye_with(n, n, (self.dtype(), self.device()))?.cholesky_solve(self, upper)
        })
    }
}
