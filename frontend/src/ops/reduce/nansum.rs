//! `nansum`

use super::forms::reduction;
use super::{cases, sum};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::sample::{Fill, Sample, plain, tensor as filled};
use keyway_dispatcher::op::{Args, Rule};

reduction! {
    /// The sum over `dims`, or over all elements with `..`, with NaN as 0. Sums of integers and bool are i64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([1.0f32, f32::NAN, 2.0])?;
    /// assert_eq!(x.nansum(0)?.item::<f32>()?, 3.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or given twice.
    pub fn nansum(x; dims, keepdim) -> Tensor { DEF.run(&[x.into(), dims, keepdim]) }
    keepdim: nansum_keepdim, all: nansum_all
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let x = tensor(args, 0)?;
    let x = if x.dtype().is_inexact() { x.isnan()?.where_cond(0, &x)? } else { x };
    sum::DEF.run(&[(&x).into(), args.get(1), args.get(2)])
}

/// Rows with some NaN, and one with only NaN.
pub(super) fn with_nan(dims: &[i64]) -> Sample {
    let nan = f64::NAN;
    let values = Fill::Values(vec![0.5, nan, -1.5, nan, nan, nan, 2.0, 0.25, nan]);
    let call = cases::over(filled(&[3, 3], values), Some(dims), &[], false);
    Sample { smooth: false, ..call }
}

fn samples() -> Vec<Sample> {
    let mut samples = cases::over_dims(plain, &[]);
    samples.push(cases::over(plain(&[2, 0, 4]), Some(&[1]), &[], false));
    samples.extend([with_nan(&[1]), with_nan(&[0, 1])]);
    samples
}

/// `nansum`
pub static DEF: OpDef = OpDef::new(
    "nansum(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    Rule::Structured(sum::rule),
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || {
            let grad = b.unsqueeze_reduced(b.grad(0)?, 0, b.arg(1), b.bool(2)?)?;
            b.input(0)?.isnan()?.where_cond(0, &grad)
        })
    }),
    samples,
)
.forms(Forms::Out)
.errors(|| cases::dim_errors(&[]))
.decomposed(|args| one(compose(args)))
.with(OpFlags::COMPLEX);
