//! The smallest and the largest element together.

use crate::Tensor;
use crate::error::Result;

impl Tensor {
    /// [`Tensor::amin`] and [`Tensor::amax`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (least, most) = Tensor::from_slice(&[2.0f32, -1.0, 3.0])?.aminmax()?;
    /// assert_eq!((least.item::<f32>()?, most.item::<f32>()?), (-1.0, 3.0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// No elements.
    pub fn aminmax(&self) -> Result<(Tensor, Tensor)> {
        Ok((self.amin()?, self.amax()?))
    }

    /// [`Tensor::amin_dims`] and [`Tensor::amax_dims`].
    ///
    /// # Errors
    /// A dimension out of range, given twice or of size 0.
    pub fn aminmax_dims(&self, dims: &[i64], keepdim: bool) -> Result<(Tensor, Tensor)> {
        Ok((self.amin_dims(dims, keepdim)?, self.amax_dims(dims, keepdim)?))
    }
}
