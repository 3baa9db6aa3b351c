//! Least squares.

use super::matrix::t;
use crate::Tensor;
use crate::error::{Result, called};

impl Tensor {
    /// The `X` of least norm that minimizes `|A X - B|` for each `A` (`self`, `[.., m, n]`) and `B` (`[.., m, k]`), of one dtype, f32,
    /// f64, c64 or c128; a `b` of one dimension is a vector. It is `A⁺ B` with the pseudoinverse of [`Tensor::pinv`], so the rank of `A` may
    /// be below `min(m, n)`, as with LAPACK's `gelsd`. Leading dimensions broadcast.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[1.0f64, 0.0], [1.0, 1.0], [1.0, 2.0]])?;
    /// let line = a.lstsq(&Tensor::new([1.0f64, 3.0, 5.0])?)?;
    /// assert_eq!(line.round()?.to_vec::<f64>()?, [1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::pinv`]; sizes that do not match.
    #[doc(alias = "linalg_lstsq")]
    pub fn lstsq(&self, b: &Tensor) -> Result<Tensor> {
        called("lstsq", &["self", "b"], || {
            let inverse = self.pinv()?;
            // Uᵀ B of the vector as a row: no dimension has to be added.
            if b.rank() == 1 { b.matmul(&t(&inverse)?) } else { inverse.matmul(b) }
        })
    }
}
