//! Methods that return real and imaginary parts.

use crate::Tensor;
use crate::error::{Result, called};

impl Tensor {
    /// The real part: a view of a complex tensor, and a real tensor itself.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Complex, Tensor};
    /// let z = Tensor::new([Complex::new(1.0f32, 2.0)])?;
    /// assert_eq!(z.real()?.to_vec::<f32>()?, [1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A complex tensor that is not strided.
    pub fn real(&self) -> Result<Tensor> {
        if !self.dtype().is_complex() {
            return Ok(self.clone());
        }
        called("real", &["self"], || self.view_as_real()?.select(-1, 0))
    }

    /// The imaginary part, a view of a complex tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Complex, Tensor};
    /// let z = Tensor::new([Complex::new(1.0f32, 2.0)])?;
    /// assert_eq!(z.imag()?.to_vec::<f32>()?, [2.0]);
    /// assert!(Tensor::new([1.0f32])?.imag().is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A real tensor, or one that is not strided.
    pub fn imag(&self) -> Result<Tensor> {
        called("imag", &["self"], || self.view_as_real()?.select(-1, 1))
    }

    /// Whether the elements are complex numbers.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Complex, Tensor};
    /// assert!(Tensor::new([Complex::new(1.0f32, 2.0)])?.is_complex());
    /// # Ok(()) }
    /// ```
    pub fn is_complex(&self) -> bool {
        self.dtype().is_complex()
    }
}
