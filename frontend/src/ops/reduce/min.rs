//! `min`

use super::extremum;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::OpDef;
use keyway_dispatcher::op::Arg;

impl Tensor {
    /// The smallest elements along `dim`, which stays as size 1 if `keepdim`, and their places: the first of
    /// equals; NaN wins. Only the element at that place gets the gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (value, place) = Tensor::from_slice(&[1.0f32, 3.0])?.min(0, false)?;
    /// assert_eq!((value.item::<f32>()?, place.item::<i64>()?), (1.0, 0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or of size 0.
    pub fn min(&self, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
        DEF.run_two(&[self.into(), Arg::Int(dim), Arg::Bool(keepdim)])
    }
}

/// `min`
pub static DEF: OpDef = extremum::along("min(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)");
