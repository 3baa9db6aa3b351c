//! `aminmax`

use super::{amax, amin, extremum};
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::OpDef;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Decomposition, Outputs, Part};

impl Tensor {
    /// The smallest and the largest of all elements; NaN if there is one. Equal elements share the gradient, as that of
    /// [`Tensor::amax`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (least, most) = Tensor::from_slice(&[2.0f32, -1.0, 3.0])?.aminmax()?;
    /// assert_eq!((least.item::<f32>()?, most.item::<f32>()?), (-1.0, 3.0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// No elements.
    pub fn aminmax(&self) -> Result<(Tensor, Tensor)> {
        DEF.run_two(&[self.into(), Arg::None, Arg::Bool(false)])
    }

    /// [`Tensor::aminmax`] over `dims`, which stay as size 1 if `keepdim`. No dims means all.
    ///
    /// # Errors
    /// A dimension out of range, given twice or of size 0.
    pub fn aminmax_dims(&self, dims: &[i64], keepdim: bool) -> Result<(Tensor, Tensor)> {
        DEF.run_two(&[self.into(), Arg::Ints(dims), Arg::Bool(keepdim)])
    }
}

fn compose(args: &Args<'_>) -> RuleResult<Outputs> {
    let all = [args.get(0), args.get(1), args.get(2)];
    Ok(Outputs::from_iter([amin::DEF.run(&all)?.into_ref(), amax::DEF.run(&all)?.into_ref()]))
}

/// `aminmax`
pub static DEF: OpDef =
    extremum::both_over_dims("aminmax(Tensor self, int[]? dim=None, bool keepdim=False) -> (Tensor, Tensor)")
        .decomposed(Decomposition { run: compose, parts: &[Part::new("amin"), Part::new("amax")] });
