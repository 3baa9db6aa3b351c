//! `min`

use super::extremum;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::OpDef;
use crate::tensor::Int;
use keyway_dispatcher::op::Arg;

impl Tensor {
    /// The minimum along `dim` and its index: the first of equal elements; NaN counts as the smallest. Only the element at that
    /// index gets the gradient. See [`Tensor::amin`] for only values and [`Tensor::min_all`] for that of all elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let (value, place) = Tensor::new([1.0f32, 3.0])?.min(0)?;
    /// assert_eq!((value.item::<f32>()?, place.item::<i64>()?), (1.0, 0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or of size 0.
    pub fn min(&self, dim: impl Int) -> Result<(Tensor, Tensor)> {
        DEF.run_pair(&[self.into(), Arg::Int(dim.to_i64()), Arg::Bool(false)])
    }

    /// [`Tensor::min`] with the reduced dimension retained with size 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (values, indices) = Tensor::new([[1, 5, 3]])?.min_keepdim(1)?;
    /// assert_eq!((values.to_vec2::<i32>()?, indices.to_vec2::<i64>()?), (vec![vec![1]], vec![vec![0]]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn min_keepdim(&self, dim: impl Int) -> Result<(Tensor, Tensor)> {
        DEF.run_pair(&[self.into(), Arg::Int(dim.to_i64()), Arg::Bool(true)])
    }
}

/// `min`
pub static DEF: OpDef = extremum::along("min(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)");
