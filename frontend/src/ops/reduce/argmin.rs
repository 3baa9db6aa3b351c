//! `argmin`

use super::extremum;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::OpDef;
use crate::tensor::Int;
use keyway_dispatcher::op::Arg;

impl Tensor {
    /// The index of the minimum along `dim`: the first of equal elements; NaN counts as the smallest.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([1.0f32, 3.0, 2.0])?;
    /// assert_eq!(x.argmin(0)?.item::<i64>()?, 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or of size 0.
    pub fn argmin(&self, dim: impl Int) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64()), Arg::Bool(false)])
    }

    /// [`Tensor::argmin`] with the reduced dimension retained with size 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[1, 5, 3], [9, 7, 8]])?;
    /// assert_eq!(x.argmin_keepdim(1)?.to_vec2::<i64>()?, [[0], [1]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn argmin_keepdim(&self, dim: impl Int) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64()), Arg::Bool(true)])
    }

    /// The row-major index of the minimum of all elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[4, 5, 3], [9, 7, 8]])?;
    /// assert_eq!(x.argmin_all()?.item::<i64>()?, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor without elements.
    pub fn argmin_all(&self) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::None, Arg::Bool(false)])
    }
}

/// `argmin`
pub static DEF: OpDef = extremum::place("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor");
