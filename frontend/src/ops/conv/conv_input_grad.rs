//! `conv_input_grad`

use super::conv::{self, call, moves, product_plan, spatial};
use super::conv_weight_grad;
use super::geometry::{Moves, cases, joined, rank, same_rank, sizes};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use crate::ops::rules::{FIRST_TWO, wrong_shape};
use crate::ops::sample::{SampleArg, error, plain, sample};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let rank = rank(args, 0, "batch, output channels")?;
    same_rank(args, 1, rank, "output channels, channels of a group")?;
    let (grad, weight) = (args.tensor(0)?.sizes(), args.tensor(1)?.sizes());
    let moves = Moves::of(args, rank)?;
    let input = sizes(args, 2, rank, 0)?;
    if grad[1] != weight[0] {
        return Err(wrong_shape(
            args,
            1,
            format!("of shape [{}, ..], as many as `grad` has channels", grad[1]),
            weight,
        ));
    }
    moves.channels(args, weight[0], "output")?;
    let places = moves.outputs(args, 1, &input, &weight[2..])?;
    if grad[2..] != places[..] {
        let expected = format!(
            "of shape [_, _, {places:?}], the output positions of the kernel in an input of {input:?}"
        );
        return Err(wrong_shape(args, 0, expected, grad));
    }
    let Some(channels) = weight[1].checked_mul(moves.groups) else {
        return Err(wrong_shape(args, 1, "of fewer channels in all groups".into(), weight));
    };
    product_plan(args, FIRST_TWO, joined(grad[0], channels, &input))
}

/// `conv_input_grad`: the gradient of `conv` with respect to its input of spatial sizes `input_sizes`, which is the transposed
/// convolution: each element of `grad` adds its multiple of the kernel to the input elements that it was computed from.
pub static DEF: OpDef = OpDef::new(
    "conv_input_grad(Tensor grad, Tensor weight, int[] input_sizes, int[] stride, int[] padding, \
     int[] dilation, int groups) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(FIRST_TWO, |b, g| {
        let of_input = b.grad(0)?;
        g.set(0, || call(&conv::DEF, [of_input, &b.input(1)?], Arg::None, moves(b)))?;
        g.set(1, || {
            let kernel = spatial(b.sizes(1));
            call(&conv_weight_grad::DEF, [&b.input(0)?, of_input], Arg::Ints(&kernel), moves(b))
        })
    }),
    || {
        let one = |case: super::geometry::Case| {
            let sizes = SampleArg::Ints(spatial(&case.input));
            sample([plain(&case.output), plain(&case.weight), sizes].into_iter().chain(case.moves))
        };
        cases().into_iter().map(one).collect()
    },
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |grad: &[usize], weight: &[usize], sizes: &[i64], message| {
        let lists = [sizes, &[1, 1], &[0, 0], &[1, 1]].map(|list| SampleArg::Ints(list.to_vec()));
        error([plain(grad), plain(weight)].into_iter().chain(lists).chain([SampleArg::Int(2)]), message)
    };
    let (grad, weight) = (&[1, 4, 2, 2][..], &[4, 2, 3, 3][..]);
    vec![
        call(&[4], weight, &[4, 4], "of 3 to 5 dimensions"),
        call(grad, &[4, 2, 3], &[4, 4], "of 4 dimensions"),
        call(grad, &[2, 2, 3, 3], &[4, 4], "of shape [4, ..]"),
        call(&[1, 3, 2, 2], &[3, 2, 3, 3], &[4, 4], "a divisor of the 3 output channels"),
        call(grad, weight, &[5, 4], "of shape [_, _, [3, 2]]"),
        call(grad, weight, &[4], "2 numbers of 0 or more"),
        call(grad, weight, &[4, 2], "reaches over 3 elements of 2"),
    ]
})
.with(OpFlags::AUTOCAST);
