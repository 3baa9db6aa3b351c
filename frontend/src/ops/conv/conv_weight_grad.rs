//! `conv_weight_grad`
//!
//! Arguments:
//! - `kernel_sizes`: the spatial sizes of the weight.

use super::conv::{self, call, moves, product_plan, spatial};
use super::conv_input_grad;
use super::geometry::{Moves, cases, joined, rank, same_rank, sizes};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::rules::{FIRST_TWO, wrong_shape};
use crate::ops::sample::{SampleArg, error, plain, sample};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let rank = rank(args, 1, "batch, channels")?;
    same_rank(args, 0, rank, "batch, output channels")?;
    let (grad, input) = (args.tensor(0)?.sizes(), args.tensor(1)?.sizes());
    let moves = Moves::of(args, rank)?;
    let kernel = sizes(args, 2, rank, 1)?;
    let channels = moves.channels(args, input[1], "input")?;
    moves.channels(args, grad[1], "output")?;
    let places = moves.outputs(args, 2, &input[2..], &kernel)?;
    if grad[0] != input[0] || grad[2..] != places[..] {
        let expected = format!(
            "of shape [{}, _, {places:?}], the output positions of the kernel in the input",
            input[0]
        );
        return Err(wrong_shape(args, 0, expected, grad));
    }
    product_plan(args, FIRST_TWO, joined(grad[1], channels, &kernel))
}

/// `conv_weight_grad`: the gradient of `conv` with respect to its weight of spatial sizes `kernel_sizes`.
pub static DEF: OpDef = OpDef::new(
    "conv_weight_grad(Tensor grad, Tensor input, int[] kernel_sizes, int[] stride, int[] padding, \
     int[] dilation, int groups) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(FIRST_TWO, |b, g| {
        let of_weight = b.grad(0)?;
        g.set(0, || call(&conv::DEF, [&b.input(1)?, of_weight], Arg::None, moves(b)))?;
        g.set(1, || {
            let sizes = spatial(b.sizes(1));
            call(&conv_input_grad::DEF, [&b.input(0)?, of_weight], Arg::Ints(&sizes), moves(b))
        })
    }),
    || {
        let one = |case: super::geometry::Case| {
            let kernel = SampleArg::Ints(spatial(&case.weight));
            sample([plain(&case.output), plain(&case.input), kernel].into_iter().chain(case.moves))
        };
        cases().into_iter().map(one).collect()
    },
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |grad: &[usize], input: &[usize], kernel: &[i64], message| {
        let lists = [kernel, &[1, 1], &[0, 0], &[1, 1]].map(|list| SampleArg::Ints(list.to_vec()));
        error([plain(grad), plain(input)].into_iter().chain(lists).chain([SampleArg::Int(2)]), message)
    };
    let (grad, input) = (&[1, 4, 2, 2][..], &[1, 4, 4, 4][..]);
    vec![
        call(grad, &[4], &[3, 3], "of 3 to 5 dimensions"),
        call(&[4, 2, 2], input, &[3, 3], "of 4 dimensions"),
        call(&[2, 4, 2, 2], input, &[3, 3], "of shape [1, _, [2, 2]]"),
        call(grad, input, &[2, 3], "of shape [1, _, [3, 2]]"),
        call(grad, input, &[3], "2 numbers of 1 or more"),
        call(grad, input, &[0, 3], "2 numbers of 1 or more"),
        call(grad, input, &[5, 3], "reaches over 5 elements of 4"),
        call(&[1, 3, 2, 2], input, &[3, 3], "a divisor of the 3 output channels"),
        call(grad, &[1, 3, 4, 4], &[3, 3], "a divisor of the 3 input channels"),
    ]
});
