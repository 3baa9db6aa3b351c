//! `adaptive_avg_pool_backward`

use super::adaptive_avg_pool::{self, CASES};
use super::geometry::{rank, sizes, spatial, with_spatial};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::rules::FIRST;
use crate::ops::sample::{SampleArg, error, plain, sample};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (rank, grad) = (rank(args, 0)?, args.tensor(0)?);
    let (sizes, dtype) = (with_spatial(grad.sizes(), &sizes(args, 1, rank)?), grad.dtype());
    Ok(Plan::one(dtype, sizes, dtype, Strides::Images(FIRST)))
}

/// `adaptive_avg_pool_backward`: adds each element of the gradient, divided by its window's size, to the elements of the
/// window.
pub static DEF: OpDef = OpDef::new(
    "adaptive_avg_pool_backward(Tensor grad, int[] input_sizes) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| {
        g.set(0, || {
            let sizes = spatial(b.sizes(0));
            adaptive_avg_pool::DEF.run(&[b.grad(0)?.into(), Arg::Ints(&sizes)])
        })
    }),
    || {
        let one = |(input, to): &(&[usize], &[i64])| {
            let places: Vec<usize> = to.iter().map(|&v| v as usize).collect();
            sample([plain(&with_spatial(input, &places)), SampleArg::Ints(spatial(input))])
        };
        CASES.iter().map(one).collect()
    },
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call =
        |grad: &[usize], to: &[i64], message| error([plain(grad), SampleArg::Ints(to.to_vec())], message);
    vec![
        call(&[4, 4], &[2, 2], "of 3 to 5 dimensions"),
        call(&[1, 2, 4, 4], &[2], "2 numbers of 1 or more"),
        call(&[1, 2, 4, 4], &[2, 0], "2 numbers of 1 or more"),
    ]
});
