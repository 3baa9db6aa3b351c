//! `mean`

use super::forms::reduction;
use super::{cases, sum};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use crate::ops::rules::{keeping, reduced_count, reduced_dims, reduced_sizes, require};
use crate::ops::sample::{SampleArg, error, plain};
use crate::ops::sparse::lines::{length, sum_grad};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule};

reduction! {
    /// The mean over `dims`, or over all elements with `..`; NaN if there are none. Integers are an error.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(x.mean(0)?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// For a sparse tensor, elements that are not stored count as 0 and are included in the count: the sum is divided by the
    /// product of the sizes. The result is sparse or strided as that of [`Tensor::sum`].
    ///
    /// # Errors
    /// A dtype that is not a float; a dimension out of range or given twice.
    pub fn mean(x; dims, keepdim) -> Tensor { DEF.run(&[x.into(), dims, keepdim]) }
    keepdim: mean_keepdim, all: mean_all
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    require(args, 0, t.dtype(), t.dtype().is_inexact(), "a float or complex dtype")?;
    let mask = reduced_dims(args, 1, t.ndim())?;
    Ok(keeping(t, t.dtype(), reduced_sizes(t.sizes(), mask, args.bool(2)?), t.dtype()))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let t = tensor(args, 0)?;
    let mask = reduced_dims(args, 1, t.rank())?;
    let count = reduced_count(t.shape(), mask);
    let sum = sum::DEF.run(&[(&widened(&t)?).into(), args.get(1), args.get(2)])?;
    cast(sum.div(count as f64)?, t.dtype())
}

/// `mean`
pub static DEF: OpDef = OpDef::new(
    "mean(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula {
        saves: 0,
        saves_outputs: 0,
        formula: |b, g| {
            if !g.needs(0) {
                return Ok(());
            }
            let share = b.grad(0)?.mul(1.0 / length(b.sizes(0), b.grad(0)?.shape()))?;
            let grad = sum_grad(b, g, &share)?;
            g.set(0, || Ok(grad))
        },
    },
    || cases::over_dims(plain, &[]),
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    vec![
        error([plain(&[3]), SampleArg::Ints(vec![1]), SampleArg::Bool(false)], "out of range"),
        error([plain(&[3, 3]), SampleArg::Ints(vec![0, -2]), SampleArg::Bool(false)], "different dimensions"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::COMPLEX);
