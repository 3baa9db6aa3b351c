//! `cummax`

use super::cumulative;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::OpDef;
use crate::tensor::Int;

impl Tensor {
    /// The cumulative maximum along `dim` and its index: the last of equal elements; NaN propagates. Only the element at that
    /// index gets the gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (values, indices) = Tensor::new([3.0f32, 1.0, 4.0])?.cummax(0)?;
    /// assert_eq!(values.to_vec::<f32>()?, [3.0, 3.0, 4.0]);
    /// assert_eq!(indices.to_vec::<i64>()?, [0, 0, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range.
    pub fn cummax(&self, dim: impl Int) -> Result<(Tensor, Tensor)> {
        cumulative::call(&DEF, self, dim.to_i64())
    }
}

/// `cummax`
pub static DEF: OpDef = cumulative::extremum("cummax(Tensor self, int dim) -> (Tensor, Tensor)", |args| {
    cumulative::compose(args, |after, before| after.ge(before))
});
