//! `var_mean`

use super::forms::reduction;
use super::{spread, var};
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::OpDef;
use crate::tensor::IntoDims;
use keyway_dispatcher::op::Arg;

reduction! {
    /// The variance and the mean over `dims`, or of all elements with `..`; the divisor of the variance is the count minus 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([[1.0f32, 3.0]])?;
    /// let (var, mean) = x.var_mean(1)?;
    /// assert_eq!((var.item::<f32>()?, mean.item::<f32>()?), (2.0, 2.0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; a dimension out of range or given twice.
    pub fn var_mean(x; dims, keepdim) -> (Tensor, Tensor) { DEF.run_pair(&[x.into(), dims, Arg::Float(1.0), keepdim]) }
    keepdim: var_mean_keepdim, all: var_mean_all, shown: ("", "", ".0", ".1")
}

impl Tensor {
    /// [`Tensor::var_mean`] with the divisor `count - correction`; with `keepdim` the reduced dimensions are retained with size
    /// 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (var, mean) = Tensor::new([[1.0f32, 5.0]])?.var_mean_with(1, 0.0, true)?;
    /// assert_eq!((var.item::<f32>()?, mean.item::<f32>()?, mean.shape()), (4.0, 3.0, &[1, 1][..]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn var_mean_with(
        &self,
        dims: impl IntoDims,
        correction: f64,
        keepdim: bool,
    ) -> Result<(Tensor, Tensor)> {
        let dims = dims.into_dims();
        DEF.run_pair(&[self.into(), Arg::Ints(&dims), Arg::Float(correction), Arg::Bool(keepdim)])
    }
}

/// `var_mean`
pub static DEF: OpDef = spread::beside_mean(
    "var_mean(Tensor self, int[]? dim=None, Scalar correction=1, bool keepdim=False) -> (Tensor, Tensor)",
)
.decomposed(|args| spread::with_mean(args, &var::DEF));
