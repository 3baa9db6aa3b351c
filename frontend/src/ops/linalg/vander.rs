//! Matrices with a structure.

use super::matrix::h;
use crate::Tensor;
use crate::error::{Result, called};
use keyway_dispatcher::error::Error;

impl Tensor {
    /// The Vandermonde matrix of each vector, `[.., n]` to `[.., n, columns]`, whose columns are the powers 0, 1, 2, ... of the
    /// elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let powers = Tensor::new([2i64, 3])?.vander(3)?;
    /// assert_eq!(powers.to_vec::<i64>()?, [1, 2, 4, 1, 3, 9]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A 0-d tensor; bool.
    #[doc(alias = "linalg_vander")]
    pub fn vander(&self, columns: usize) -> Result<Tensor> {
        called("vander", &["self", "columns"], || {
            if self.rank() == 0 {
                let (expected, got) = ("of one dimension or more".to_string(), self.shape().into());
                return Err(Error::Shape { op: "vander", argument: "self", expected, got }.into());
            }
            let column = self.unsqueeze(-1)?;
            let one = column.ones_like()?;
            if columns < 2 {
                return one.narrow(-1, 0, columns);
            }
            let mut sizes = column.shape().to_vec();
            sizes[self.rank()] = columns - 1;
            Tensor::cat(&[&one, &column.expand(sizes)?.cumprod(-1)?], -1)
        })
    }

    /// The first `n` columns of the product `H₁ H₂ ... Hₖ` of Householder reflections `I - τᵢ vᵢ vᵢᴴ`, as LAPACK's `orgqr`
    /// computes them: `vᵢ` is column `i` of `self` (`[.., m, n]`) below the diagonal, 1 on it and 0 above, `tau` is `[.., k]` with
    /// `k <= n <= m`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (v, tau) = (Tensor::new([[0.0f32], [1.0]])?, Tensor::new([1.0f32])?);
    /// assert_eq!(v.householder_product(&tau)?.to_vec::<f32>()?, [0.0, -1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fewer rows than columns; more elements of `tau` than columns.
    #[doc(alias = "orgqr")]
    #[doc(alias = "linalg_householder_product")]
    pub fn householder_product(&self, tau: &Tensor) -> Result<Tensor> {
        called("householder_product", &["self", "tau"], || {
            let wrong = |argument, expected: &str, t: &Tensor| -> crate::Error {
                let (expected, got) = (expected.to_string(), t.shape().into());
                Error::Shape { op: "householder_product", argument, expected, got }.into()
            };
            let (lead, m, n) = match self.shape() {
                [lead @ .., m, n] if m >= n => (lead, *m, *n),
                _ => return Err(wrong("self", "[.., m, n] with as many rows as columns, or more", self)),
            };
            let k = match tau.shape() {
                [own @ .., k] if *k <= n && own == lead => *k,
                _ => return Err(wrong("tau", &format!("{lead:?}, followed by at most {n}"), tau)),
            };
            let one = Tensor::eye_with(m, n, (self.dtype(), self.device()))?;
            let vectors = self.tril_with(-1)?.add(&one)?;
            let mut made = one.expand(self.shape())?;
            for i in (0..k).rev() {
                let v = vectors.narrow(-1, i, 1)?;
                let scaled = v.mul(&tau.narrow(-1, i, 1)?.unsqueeze(-1)?)?;
                made = made.sub(&scaled.matmul(&h(&v)?.matmul(&made)?)?)?;
            }
            made.contiguous()
        })
    }
}
