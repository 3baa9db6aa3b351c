//! `logsumexp`

use super::forms::reduction;
use super::{amax, cases, sum};
use crate::Tensor;
use crate::autograd::Backward;
use crate::error::Result;
use crate::ops::composite::{cast, one, tensor, widened};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::rules::{float_of, keeping, reduced_count, reduced_dims, reduced_sizes};
use crate::ops::sample::{SampleArg, error, plain};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

reduction! {
    /// `log(sum(exp(x)))` over `dims`, or over all elements with `..`, without overflow. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([1000.0f32])?;
    /// assert_eq!(x.logsumexp(0)?.item::<f32>()?, 1000.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or given twice.
    #[doc(alias = "log_sum_exp")]
    pub fn logsumexp(x; dims, keepdim) -> Tensor { DEF.run(&[x.into(), dims, keepdim]) }
    keepdim: logsumexp_keepdim, all: logsumexp_all
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    let compute = float_of(t.dtype());
    let mask = reduced_dims(args, 1, t.ndim())?;
    let mut plan = keeping(t, compute, reduced_sizes(t.sizes(), mask, args.bool(2)?), compute);
    plan.cast = 0b1;
    Ok(plan)
}

/// The exponents are relative to the maximum, or to 0 where that is infinite.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let x = tensor(args, 0)?;
    let dtype = float_of(x.dtype());
    let x = widened(&cast(x, dtype)?)?;
    let mask = reduced_dims(args, 1, x.rank())?;
    let sum = |x: &Tensor| sum::DEF.run(&[x.into(), args.get(1), args.get(2)]);
    if reduced_count(x.shape(), mask) == 0 {
        return cast(sum(&x)?.log()?, dtype);
    }
    let greatest = amax::DEF.run(&[(&x).into(), args.get(1), Arg::Bool(true)])?;
    let shift = greatest.masked_fill(&greatest.abs()?.ge(f64::INFINITY)?, 0)?;
    let kept = reduced_sizes(x.shape(), mask, args.bool(2)?);
    let made = sum(&x.sub(&shift)?.exp()?)?.log()?.add(&shift.reshape_as_sizes(&kept)?)?;
    cast(made, dtype)
}

/// The gradient times the softmax of the elements. The output is only used to avoid overflow: it is rounded, and so `exp(out)`
/// may differ from the sum of exponentials for large elements.
fn gradient(b: &Backward<'_>) -> Result<Tensor> {
    let dims = if let Arg::Ints(dims) = b.arg(1) { dims } else { &[] };
    let out = widened(&b.unsqueeze_reduced(&b.output(0)?.detach(), 0, b.arg(1), b.bool(2)?)?)?;
    let grad = widened(&b.unsqueeze_reduced(b.grad(0)?, 0, b.arg(1), b.bool(2)?)?)?;
    // Minus infinity is the log-sum-exp of the empty set: no element contributes.
    let out = out.eq(f64::NEG_INFINITY)?.where_cond(0, &out)?;
    let powers = widened(&b.input(0)?)?.sub(&out)?.exp()?;
    let total = powers.sum_keepdim(dims)?;
    let total = total.eq(0)?.where_cond(1, &total)?;
    grad.div(&total)?.mul(&powers)
}

/// `logsumexp`
pub static DEF: OpDef = OpDef::new(
    "logsumexp(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0b1, saves_outputs: 0b1, formula: |b, g| g.set(0, || gradient(b)) },
    || cases::over_dims(plain, &[]),
)
.forms(Forms::Out)
.errors(|| {
    vec![
        error([plain(&[3]), SampleArg::Ints(vec![1]), SampleArg::Bool(false)], "out of range"),
        error([plain(&[3, 3]), SampleArg::Ints(vec![0, -2]), SampleArg::Bool(false)], "different dimensions"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST_F32);
