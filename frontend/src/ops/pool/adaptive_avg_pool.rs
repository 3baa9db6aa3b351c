//! `adaptive_avg_pool`

use super::adaptive_avg_pool_backward;
use super::geometry::{rank, spatial, with_spatial};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::rules::{FIRST, wrong_shape};
use crate::ops::sample::{ErrorSample, Sample, SampleArg, error, plain, sample};
use crate::ops::spatial::{list, size_from};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

/// The sizes of a result with the spatial sizes in argument 1.
pub(super) fn result_sizes(args: &Args<'_>, rank: usize) -> RuleResult<Dims> {
    let x = args.tensor(0)?;
    if x.sizes()[2..].contains(&0) {
        return Err(wrong_shape(
            args,
            0,
            "of 1 or more elements in each spatial dimension".into(),
            x.sizes(),
        ));
    }
    let to: Dims = list(args, 1, rank, &size_from(0))?.iter().map(|&v| v as usize).collect();
    Ok(with_spatial(x.sizes(), &to))
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (sizes, dtype) = (result_sizes(args, rank(args, 0)?)?, args.tensor(0)?.dtype());
    Ok(Plan::one(dtype, sizes, dtype, Strides::Images(FIRST)))
}

/// Input sizes and the spatial sizes of results.
pub(super) const CASES: [(&[usize], &[i64]); 10] = [
    (&[2, 2, 7], &[3]),
    (&[2, 3, 5, 4], &[3, 3]),
    (&[2, 3, 4, 5], &[2, 7]),
    (&[1, 2, 3, 2], &[5, 3]),
    (&[2, 3, 4, 6], &[2, 3]),
    (&[1, 2, 5, 3], &[1, 1]),
    (&[1, 2, 3, 4, 5], &[2, 3, 4]),
    (&[0, 2, 4, 4], &[3, 3]),
    (&[1, 2, 3, 4], &[2, 0]),
    (&[2, 3, 5], &[0]),
];

/// The error samples of an op with an input and the spatial sizes of its result.
pub(super) fn errors() -> Vec<ErrorSample> {
    let call =
        |input: &[usize], to: &[i64], message| error([plain(input), SampleArg::Ints(to.to_vec())], message);
    vec![
        call(&[4, 4], &[2, 2], "of 3 to 5 dimensions"),
        call(&[1, 2, 4, 4], &[2], "2 numbers of 0 or more"),
        call(&[1, 2, 4, 4], &[2, -1], "2 numbers of 0 or more"),
        call(&[1, 2, 0, 4], &[2, 2], "1 or more elements in each spatial dimension"),
    ]
}

fn samples() -> Vec<Sample> {
    let call = |(input, to): &(&[usize], &[i64])| sample([plain(input), SampleArg::Ints(to.to_vec())]);
    CASES.iter().map(call).collect()
}

/// `adaptive_avg_pool`: output `i` is the mean of the elements `⌊i * input / output⌋ .. ⌈(i + 1) * input / output⌉` of each
/// spatial dimension.
pub static DEF: OpDef = OpDef::new(
    "adaptive_avg_pool(Tensor self, int[] output_size) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| {
        g.set(0, || {
            let sizes = spatial(b.sizes(0));
            adaptive_avg_pool_backward::DEF.run(&[b.grad(0)?.into(), Arg::Ints(&sizes)])
        })
    }),
    samples,
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(errors);
