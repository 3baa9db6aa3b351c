//! The LU decomposition as matrices.

use super::lu_factor::{permutations, permuted};
use crate::Tensor;
use crate::error::{Result, called};

impl Tensor {
    /// The LU decomposition `A = P L U` with partial pivoting of each matrix, `[.., m, n]` of f32, f64, c64 or c128: a permutation matrix
    /// `P` (`[.., m, m]`), a lower triangular `L` with a diagonal of 1 (`[.., m, k]`) and an upper triangular `U`
    /// (`[.., k, n]`), for `k = min(m, n)`. `P` has no gradient. It is [`Tensor::lu_factor`] unpacked; the pivots are read on
    /// the host.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (p, l, u) = Tensor::new([[1.0f32, 2.0], [2.0, 6.0]])?.lu()?;
    /// assert_eq!(p.to_vec::<f32>()?, [0.0, 1.0, 1.0, 0.0]);
    /// assert_eq!(l.to_vec::<f32>()?, [1.0, 0.0, 0.5, 1.0]);
    /// assert_eq!(u.to_vec::<f32>()?, [2.0, 6.0, 0.0, -1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::lu_factor`].
    #[doc(alias = "linalg_lu")]
    pub fn lu(&self) -> Result<(Tensor, Tensor, Tensor)> {
        called("lu", &["self"], || {
            let (lu, pivots) = self.lu_factor()?;
            let (m, n) = (lu.dim(-2)?, lu.dim(-1)?);
            let (k, options) = (m.min(n), (lu.dtype(), lu.device()));
            let l = lu.narrow(-1, 0, k)?.tril_with(-1)?.add(&Tensor::eye_with(m, k, options)?)?;
            let u = lu.narrow(-2, 0, k)?.triu()?;
            let [_, inverse] = permutations(&pivots, m)?;
            let mut sizes = lu.shape().to_vec();
            sizes[lu.rank() - 1] = m;
            let p = permuted(&Tensor::eye_with(m, m, options)?.expand(sizes)?, &inverse)?;
            Ok((p, l, u))
        })
    }
}
