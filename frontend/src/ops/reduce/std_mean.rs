//! `std_mean`

use super::{spread, std};
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::OpDef;
use keyway_dispatcher::op::{Arg, Decomposition, Part};

impl Tensor {
    /// The standard deviation of all elements, divided by their number less 1, and their mean.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (std, mean) = Tensor::from_slice(&[1.0f32, 1.0])?.std_mean()?;
    /// assert_eq!((std.item::<f32>()?, mean.item::<f32>()?), (0.0, 1.0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn std_mean(&self) -> Result<(Tensor, Tensor)> {
        DEF.run_two(&[self.into(), Arg::None, Arg::Float(1.0), Arg::Bool(false)])
    }

    /// The standard deviations over `dims`, which stay as size 1 if `keepdim`, divided by the number of elements less `correction`, and
    /// the means. No dims means all.
    ///
    /// # Errors
    /// A dtype that is not a float; a dimension out of range or given twice.
    pub fn std_mean_dims(&self, dims: &[i64], correction: f64, keepdim: bool) -> Result<(Tensor, Tensor)> {
        DEF.run_two(&[self.into(), Arg::Ints(dims), Arg::Float(correction), Arg::Bool(keepdim)])
    }
}

/// `std_mean`
pub static DEF: OpDef = spread::beside_mean(
    "std_mean(Tensor self, int[]? dim=None, Scalar correction=1, bool keepdim=False) -> (Tensor, Tensor)",
)
.decomposed(Decomposition {
    run: |args| spread::with_mean(args, &std::DEF),
    parts: &[Part::new("std"), Part::new("mean")],
});
