//! `std_mean`

use super::forms::reduction;
use super::{spread, std};
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::OpDef;
use crate::tensor::IntoDims;
use keyway_dispatcher::op::Arg;

reduction! {
    /// The standard deviation and the mean over `dims`, or of all elements with `..`; the divisor of the deviation is the count
    /// minus 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([[1.0f32, 3.0]])?;
    /// let (std, mean) = x.std_mean(1)?;
    /// assert_eq!((std.item::<f32>()?, mean.item::<f32>()?), (2.0f32.sqrt(), 2.0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; a dimension out of range or given twice.
    pub fn std_mean(x; dims, keepdim) -> (Tensor, Tensor) { DEF.run_pair(&[x.into(), dims, Arg::Float(1.0), keepdim]) }
    keepdim: std_mean_keepdim, all: std_mean_all, shown: ("", "", ".0", ".1")
}

impl Tensor {
    /// [`Tensor::std_mean`] with the divisor `count - correction`; with `keepdim` the reduced dimensions are retained with size
    /// 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (std, mean) = Tensor::new([[1.0f32, 3.0]])?.std_mean_with(1, 0.0, true)?;
    /// assert_eq!((std.item::<f32>()?, mean.item::<f32>()?, mean.shape()), (1.0, 2.0, &[1, 1][..]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn std_mean_with(
        &self,
        dims: impl IntoDims,
        correction: f64,
        keepdim: bool,
    ) -> Result<(Tensor, Tensor)> {
        let dims = dims.into_dims();
        DEF.run_pair(&[self.into(), Arg::Ints(&dims), Arg::Float(correction), Arg::Bool(keepdim)])
    }
}

/// `std_mean`
pub static DEF: OpDef = spread::beside_mean(
    "std_mean(Tensor self, int[]? dim=None, Scalar correction=1, bool keepdim=False) -> (Tensor, Tensor)",
)
.decomposed(|args| spread::with_mean(args, &std::DEF));
