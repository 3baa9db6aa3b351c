//! `amin`

use super::extremum;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::OpDef;
use keyway_dispatcher::op::Arg;

impl Tensor {
    /// The smallest element; NaN if there is one. Ties share the gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1i32, 3])?.amin()?.item::<i32>()?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor without elements.
    pub fn amin(&self) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::None, Arg::Bool(false)])
    }

    /// The smallest elements over `dims`, which stay as size 1 if `keepdim`. No dims means all.
    ///
    /// # Errors
    /// A dimension out of range or given twice, or one of size 0.
    pub fn amin_dims(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(dims), Arg::Bool(keepdim)])
    }
}

/// `amin`
pub static DEF: OpDef =
    extremum::over_dims("amin(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor");
