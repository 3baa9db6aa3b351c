//! `vdot`, `vecdot` and `adjoint`: products with conjugates.

use crate::Tensor;
use crate::error::{Result, called};
use crate::tensor::Int;

impl Tensor {
    /// The dot product of two vectors, the first one conjugated: `Σ conj(a) b`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Complex, Tensor};
    /// let z = Tensor::new([Complex::new(1.0f32, 2.0)])?;
    /// assert_eq!(z.vdot(&z)?.item::<Complex<f32>>()?, Complex::new(5.0, 0.0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::dot`].
    pub fn vdot(&self, other: &Tensor) -> Result<Tensor> {
        called("vdot", &["self", "other"], || self.conj()?.dot(other))
    }

    /// The dot products along dimension `dim` of two tensors that broadcast, the first one conjugated: `Σ conj(a) b`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(x.vecdot(&x, -1)?.to_vec::<f32>()?, [5.0, 25.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, a dimension out of range.
    #[doc(alias = "linalg.vecdot")]
    pub fn vecdot(&self, other: &Tensor, dim: impl Int) -> Result<Tensor> {
        let dim = dim.to_i64();
        called("vecdot", &["self", "other", "dim"], || self.conj()?.mul(other)?.sum(dim))
    }

    /// The conjugate transpose of matrices of shape `[.., n, m]`, of shape `[.., m, n]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Complex, Tensor};
    /// let z = Tensor::new([[Complex::new(1.0f32, 2.0), Complex::new(3.0, 4.0)]])?;
    /// assert_eq!(z.adjoint()?.to_vec2::<Complex<f32>>()?, [[Complex::new(1.0, -2.0)], [Complex::new(3.0, -4.0)]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fewer than two dimensions.
    #[doc(alias = "mH")]
    #[doc(alias = "H")]
    pub fn adjoint(&self) -> Result<Tensor> {
        called("adjoint", &["self"], || self.transpose(-2, -1)?.conj())
    }
}
