//! `kl_div`
//!
//! Arguments:
//! - `log_target`: whether `target` holds logarithms of probabilities.

use super::Reduction;
use super::{one, reduce_narrowed, wide_pair};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::FIRST_TWO;
use crate::ops::sample::{Fill, Sample, SampleArg, plain, sample, tensor as filled, uniform};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The mean of `t (log(t) - x)` for log-probabilities `x` and probabilities `t`. The Kullback-Leibler divergence itself is
    /// the sum or, per row, [`Reduction::BatchMean`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([0.0f32])?;
    /// let t = Tensor::new([1.0f32])?;
    /// assert_eq!(x.kl_div(&t)?.item::<f32>()?, 0.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An input that is not a float; incompatible shapes.
    pub fn kl_div(&self, target: &Tensor) -> Result<Tensor> {
        self.kl_div_with(target, false, Reduction::Mean)
    }

    /// [`Tensor::kl_div`] with a reduction; with `log_target` the targets are log-probabilities.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Reduction};
    /// let (a, b) = (Tensor::new([[0.5f32, 0.5]])?.log()?, Tensor::new([[1.0f32, 1.0]])?.log()?);
    /// let loss = a.kl_div_with(&b, true, Reduction::Sum)?;
    /// assert!((loss.item::<f32>()? - 2.0 * 2f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn kl_div_with(&self, target: &Tensor, log_target: bool, reduction: Reduction) -> Result<Tensor> {
        DEF.run(&[self.into(), target.into(), Arg::Bool(log_target), reduction.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    args.bool(2)?;
    if args.str(3)? != "batchmean" {
        return super::rule(args, 3, FIRST_TWO);
    }
    float_tensor(args, 0)?;
    args.tensor(1)?;
    args.broadcast(FIRST_TWO)?;
    let dtype = args.promote(FIRST_TWO)?;
    let mut plan = Plan::one(dtype, Dims::new(), dtype, Strides::Contiguous);
    plan.cast = FIRST_TWO;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, target) = wide_pair(args)?;
    let loss = if args.bool(2)? {
        // A target of 0 has an infinite logarithm, and so may the input.
        let none = target.eq(f64::NEG_INFINITY)?;
        let apart = none.where_cond(0.0, &target)?.sub(&none.where_cond(0.0, &x)?)?;
        target.exp()?.mul(&apart)?
    } else {
        // `t log(t)` is 0 where `t` is 0.
        let none = target.eq(0.0)?;
        let own = none.where_cond(0.0, &target.mul(&none.where_cond(1.0, &target)?.log()?)?)?;
        // A target of 0 has no loss where the input is 0 too and its logarithm infinite.
        let impossible = none.logical_and(&x.isinf()?)?;
        own.sub(&target.mul(&impossible.where_cond(0.0, &x)?)?)?
    };
    if args.str(3)? == "batchmean" {
        return cast(loss.sum_all()?.div(x.dim(0)? as f64)?, args.promote(0b11)?);
    }
    reduce_narrowed(args, 3, loss, 0b11)
}

/// `kl_div`
pub static DEF: OpDef = OpDef::new(
    "kl_div(Tensor self, Tensor target, bool log_target=False, str reduction='mean') -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    || {
        let logs = [plain(&[3, 4]), plain(&[3, 4]), SampleArg::Bool(true), SampleArg::Str("batchmean")];
        let pair = |sizes: &[usize]| [plain(sizes), uniform(sizes, 0.1, 0.9)];
        // Targets of 0 with inputs of 0 and others, as probabilities and as logarithms.
        let input = || filled(&[4], Fill::Values(vec![f64::NEG_INFINITY, -1.0, -2.0, f64::NEG_INFINITY]));
        let impossible = |target, logs| {
            let rest = [filled(&[4], Fill::Values(target)), SampleArg::Bool(logs), SampleArg::Str("none")];
            Sample { smooth: false, ..sample([input()].into_iter().chain(rest)) }
        };
        let shares = impossible(vec![0.0, 0.0, 1.0, 0.0], false);
        let of_logs = impossible(vec![f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0, f64::NEG_INFINITY], true);
        super::samples(vec![sample(logs), shares, of_logs], pair, &[SampleArg::Bool(false)])
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| super::errors(&[SampleArg::Bool(false)]))
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST_F32);
