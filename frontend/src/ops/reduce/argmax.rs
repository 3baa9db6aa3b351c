//! `argmax`

use super::extremum;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::OpDef;
use crate::tensor::Int;
use keyway_dispatcher::op::Arg;

impl Tensor {
    /// The index of the maximum along `dim`: the first of equal elements; NaN counts as the largest.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([1.0f32, 3.0, 2.0])?;
    /// assert_eq!(x.argmax(0)?.item::<i64>()?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or of size 0.
    pub fn argmax(&self, dim: impl Int) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64()), Arg::Bool(false)])
    }

    /// [`Tensor::argmax`] with the reduced dimension retained with size 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[1, 5, 3], [9, 7, 8]])?;
    /// assert_eq!(x.argmax_keepdim(1)?.to_vec2::<i64>()?, [[1], [0]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn argmax_keepdim(&self, dim: impl Int) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64()), Arg::Bool(true)])
    }

    /// The row-major index of the maximum of all elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[1, 5, 3], [9, 7, 8]])?;
    /// assert_eq!(x.argmax_all()?.item::<i64>()?, 3);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor without elements.
    pub fn argmax_all(&self) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::None, Arg::Bool(false)])
    }
}

/// `argmax`
pub static DEF: OpDef = extremum::place("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor");
