//! `nanmean`

use super::forms::reduction;
use super::{cases, nansum, sum};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::sample::{Sample, plain};
use keyway_dispatcher::op::{Args, Rule};

reduction! {
    /// The mean over `dims`, or over all elements with `..`, of the elements that are not NaN; NaN if there are none.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([1.0f32, f32::NAN, 2.0])?;
    /// assert_eq!(x.nanmean(0)?.item::<f32>()?, 1.5);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; a dimension out of range or given twice.
    pub fn nanmean(x; dims, keepdim) -> Tensor { DEF.run(&[x.into(), dims, keepdim]) }
    keepdim: nanmean_keepdim, all: nanmean_all
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let t = tensor(args, 0)?;
    let x = widened(&t)?;
    let there = x.isnan()?.logical_not()?;
    let count = sum::DEF.run(&[(&there).into(), args.get(1), args.get(2)])?.to_dtype(x.dtype())?;
    let total = nansum::DEF.run(&[(&x).into(), args.get(1), args.get(2)])?;
    cast(total.div(&count)?, t.dtype())
}

fn samples() -> Vec<Sample> {
    let mut samples = cases::over_dims(plain, &[]);
    samples.extend([nansum::with_nan(&[1]), nansum::with_nan(&[0, 1])]);
    samples
}

/// `nanmean`
pub static DEF: OpDef = OpDef::new(
    "nanmean(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    Rule::Structured(|args| {
        float_tensor(args, 0)?;
        sum::rule(args)
    }),
    Derivative::Composite,
    samples,
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(|| cases::dim_errors(&[]))
.decomposed(|args| one(compose(args)));
