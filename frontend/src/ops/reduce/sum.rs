//! `sum`

use super::cases;
use super::forms::reduction;
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::rules::{keeping, reduced_dims, reduced_sizes};
use crate::ops::sample::{Sample, plain};
use crate::ops::sparse::lines::sum_grad;
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule};

reduction! {
    /// The sum over `dims`, or of all elements with `..`. Integers and bool give i64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(x.sum(1)?.to_vec::<f32>()?, [3.0, 7.0]);
    /// assert_eq!(x.sum_keepdim(0)?.shape(), [1, 2]);
    /// assert_eq!(x.sum_all()?.item::<f32>()?, 10.0);
    /// # Ok(()) }
    /// ```
    ///
    /// For a sparse tensor, elements that are not stored count as 0. The sum over all sparse dimensions is strided, over others
    /// sparse; the gradient of an entry is that of its coordinate, also for duplicates.
    ///
    /// # Errors
    /// A dimension out of range or given twice.
    pub fn sum(x; dims, keepdim) -> Tensor { DEF.run(&[x.into(), dims, keepdim]) }
    keepdim: sum_keepdim, all: sum_all
}

/// The rule, shared with `prod`.
pub(super) fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    let mask = reduced_dims(args, 1, t.ndim())?;
    let dtype = if t.dtype().is_inexact() { t.dtype() } else { DType::I64 };
    Ok(keeping(t, t.dtype(), reduced_sizes(t.sizes(), mask, args.bool(2)?), dtype))
}

fn samples() -> Vec<Sample> {
    let mut samples = cases::over_dims(plain, &[]);
    samples.push(cases::over(plain(&[2, 0, 4]), Some(&[1]), &[], false));
    samples.push(cases::over(plain(&[0]), None, &[], false));
    samples
}

/// `sum`
pub static DEF: OpDef = OpDef::new(
    "sum(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| {
        if !g.needs(0) {
            return Ok(());
        }
        let grad = sum_grad(b, g, b.grad(0)?)?;
        g.set(0, || Ok(grad))
    }),
    samples,
)
.forms(Forms::Out)
.errors(|| cases::dim_errors(&[]))
.with(OpFlags::AUTOCAST_F32)
.with(OpFlags::COMPLEX);
