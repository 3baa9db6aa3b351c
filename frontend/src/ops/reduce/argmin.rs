//! `argmin`

use super::extremum;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::OpDef;
use keyway_dispatcher::op::Arg;

impl Tensor {
    /// The place of the smallest element along `dim`, which stays as size 1 if `keepdim`; without a dim, in the
    /// flattened tensor. The first of equals; NaN wins.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0, 2.0])?;
    /// assert_eq!(x.argmin(None, false)?.item::<i64>()?, 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or of size 0.
    pub fn argmin(&self, dim: Option<i64>, keepdim: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::optional(dim), Arg::Bool(keepdim)])
    }
}

/// `argmin`
pub static DEF: OpDef = extremum::place("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor");
