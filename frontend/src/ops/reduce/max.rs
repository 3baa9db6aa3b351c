//! `max`

use super::extremum;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::OpDef;
use keyway_dispatcher::op::Arg;

impl Tensor {
    /// The largest elements along `dim`, which stays as size 1 if `keepdim`, and their places: the first of
    /// equals; NaN wins. Only the element at that place gets the gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (value, place) = Tensor::from_slice(&[1.0f32, 3.0])?.max(0, false)?;
    /// assert_eq!((value.item::<f32>()?, place.item::<i64>()?), (3.0, 1));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or of size 0; bool.
    pub fn max(&self, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
        DEF.run_two(&[self.into(), Arg::Int(dim), Arg::Bool(keepdim)])
    }
}

/// `max`
pub static DEF: OpDef = extremum::along("max(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)");
