//! `adaptive_max_pool`

use super::adaptive_avg_pool::{CASES, errors, result_sizes};
use super::geometry::{rank_of_numbers, spatial};
use super::max_pool_backward;
use crate::DType;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::FIRST;
use crate::ops::sample::{Fill, SampleArg, sample, tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let rank = rank_of_numbers(args, 0)?;
    let (sizes, dtype) = (result_sizes(args, rank)?, args.tensor(0)?.dtype());
    let strides = Strides::Images(FIRST);
    Ok(Plan::one(dtype, sizes.clone(), dtype, strides.clone()).and(sizes, DType::I64, strides))
}

/// `adaptive_max_pool`: the maximum of each window of `adaptive_avg_pool`, and its flat index in the spatial dimensions of its
/// channel: the first of equal elements, the last NaN.
pub static DEF: OpDef = OpDef::new(
    "adaptive_max_pool(Tensor self, int[] output_size) -> (Tensor, Tensor)",
    Rule::Structured(rule),
    Derivative::Formula {
        saves: 0,
        saves_outputs: 0b10,
        formula: |b, g| {
            g.set(0, || {
                let sizes = spatial(b.sizes(0));
                max_pool_backward::DEF.run(&[b.grad(0)?.into(), (&b.output(1)?).into(), Arg::Ints(&sizes)])
            })
        },
    },
    || {
        let call = |(input, to): &(&[usize], &[i64])| {
            sample([tensor(input, Fill::Distinct(-2.0, 2.0)), SampleArg::Ints(to.to_vec())])
        };
        CASES.iter().map(call).collect()
    },
)
.dtypes(Dtypes::NUMERIC)
.errors(errors)
.with(OpFlags::EXACT);
