//! `lp_pool`
//!
//! Arguments:
//! - `norm_type`: the order of the norm.

use super::avg_pool;
use super::geometry::{Window, rank, with_spatial};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{kept, wrong_value};
use crate::ops::sample::{ErrorSample, Sample, SampleArg, error, plain, sample, uniform};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (rank, x) = (rank(args, 0)?, args.tensor(0)?);
    let p = args.float(1)?;
    if p == 0.0 || p.is_nan() {
        return Err(wrong_value(args, 1, "an exponent other than 0 and NaN".into()));
    }
    let places = Window::of(args, rank, 2, None, 5)?.places(args, &x.sizes()[2..])?;
    let sizes = with_spatial(x.sizes(), &places);
    let strides = kept(x, &sizes);
    Ok(Plan::one(x.dtype(), sizes, x.dtype(), strides))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (own, p) = (tensor(args, 0)?, args.float(1)?);
    let count: f64 = args.ints(2)?.iter().map(|&size| size as f64).product();
    let mean = avg_pool::DEF.run(&[
        (&widened(&own)?.pow(p)?).into(),
        args.get(2),
        args.get(3),
        args.get(4),
        args.get(5),
        Arg::Bool(true),
        Arg::None,
    ])?;
    // The mean itself, but with a gradient of 0 where it is 0, since the root has no derivative there.
    let mean = if p > 1.0 { mean.masked_fill(&mean.eq(0)?, 0)? } else { mean };
    cast(mean.mul(count)?.pow(1.0 / p)?, own.dtype())
}

fn call(x: SampleArg, p: f64, [kernel, stride]: [&[i64]; 2], ceil: bool) -> Vec<SampleArg> {
    let padding = vec![0; kernel.len()];
    let lists = [kernel.to_vec(), stride.to_vec(), padding].map(SampleArg::Ints);
    [x, SampleArg::Float(p)].into_iter().chain(lists).chain([SampleArg::Bool(ceil)]).collect()
}

fn samples() -> Vec<Sample> {
    let positive = |sizes: &[usize]| uniform(sizes, 0.5, 2.0);
    vec![
        sample(call(plain(&[2, 2, 7]), 2.0, [&[3], &[2]], false)),
        sample(call(plain(&[2, 3, 4, 5]), 2.0, [&[2, 2], &[2, 2]], false)),
        sample(call(positive(&[2, 3, 4, 5]), 3.0, [&[3, 2], &[1, 1]], false)),
        sample(call(positive(&[2, 2, 5, 4]), 1.5, [&[2, 3], &[2, 2]], true)),
        sample(call(positive(&[1, 2, 3, 4, 2]), 1.0, [&[2, 2, 1], &[1, 2, 1]], false)),
        sample(call(positive(&[1, 2, 2, 3]), 2.0, [&[3, 5], &[2, 3]], true)),
        sample(call(plain(&[0, 2, 4, 4]), 2.0, [&[2, 2], &[2, 2]], false)),
    ]
}

fn errors() -> Vec<ErrorSample> {
    let two: &[i64] = &[2, 2];
    vec![
        error(call(plain(&[4, 4]), 2.0, [two, two], false), "of 3 to 5 dimensions"),
        error(call(plain(&[1, 2, 4, 4]), 0.0, [two, two], false), "an exponent other than 0"),
        error(call(plain(&[1, 2, 4, 4]), f64::NAN, [two, two], false), "an exponent other than 0"),
        error(call(plain(&[1, 2, 4, 4]), 2.0, [&[2, 5], two], false), "reaches over 5 elements of 4"),
    ]
}

/// `lp_pool`: `(Σ x^p)^(1/p)` of each position of a sliding window, where `p` is `norm_type`; a window that exceeds the input
/// counts as a full window with the same mean of powers.
pub static DEF: OpDef = OpDef::new(
    "lp_pool(Tensor self, float norm_type, int[] kernel_size, int[] stride, int[] padding, \
     bool ceil_mode) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.decomposed(|args| one(compose(args)));
