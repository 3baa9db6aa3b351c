//! `argmax`

use super::extremum;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::OpDef;
use keyway_dispatcher::op::Arg;

impl Tensor {
    /// The place of the largest element along `dim`, which stays as size 1 if `keepdim`; without a dim, in the
    /// flattened tensor. The first of equals; NaN wins.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0, 2.0])?;
    /// assert_eq!(x.argmax(None, false)?.item::<i64>()?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or of size 0.
    pub fn argmax(&self, dim: Option<i64>, keepdim: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::optional(dim), Arg::Bool(keepdim)])
    }
}

/// `argmax`
pub static DEF: OpDef = extremum::place("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor");
