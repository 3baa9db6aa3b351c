//! Minimum and maximum in one call.

use crate::Tensor;
use crate::error::{Result, called};
use crate::tensor::IntoDims;

impl Tensor {
    /// [`Tensor::amin`] and [`Tensor::amax`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let (least, most) = Tensor::new([2.0f32, -1.0, 3.0])?.aminmax(0)?;
    /// assert_eq!((least.item::<f32>()?, most.item::<f32>()?), (-1.0, 3.0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range, given twice or of size 0.
    pub fn aminmax(&self, dims: impl IntoDims) -> Result<(Tensor, Tensor)> {
        called("aminmax", &["self", "dims"], || {
            let dims = dims.into_dims();
            Ok((self.amin(&dims)?, self.amax(&dims)?))
        })
    }

    /// [`Tensor::aminmax`] with the reduced dimensions retained with size 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (low, high) = Tensor::new([[1, 5, 3]])?.aminmax_keepdim(1)?;
    /// assert_eq!((low.to_vec2::<i32>()?, high.to_vec2::<i32>()?), (vec![vec![1]], vec![vec![5]]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn aminmax_keepdim(&self, dims: impl IntoDims) -> Result<(Tensor, Tensor)> {
        called("aminmax", &["self", "dims"], || {
            let dims = dims.into_dims();
            Ok((self.amin_keepdim(&dims)?, self.amax_keepdim(&dims)?))
        })
    }
}
