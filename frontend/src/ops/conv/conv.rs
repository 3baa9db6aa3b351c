//! `conv`
//!
//! Arguments:
//! - `input`: `[batch, channels, spatial..]`.
//! - `weight`: `[output channels, channels / groups, kernel..]`.
//! - `bias`: one value for each output channel, or None.

use super::geometry::{Case, Moves, case, cases, joined, rank, same_rank};
use super::{conv_input_grad, conv_weight_grad};
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use crate::ops::rules::{FIRST_THREE, FIRST_TWO, require, wrong_shape};
use crate::ops::sample::{ErrorSample, Sample, SampleArg, error, plain, sample};
use crate::{Tensor, autograd::Backward};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    product_plan(args, FIRST_THREE, output_sizes(args)?)
}

/// The output sizes, from the first seven arguments.
pub(super) fn output_sizes(args: &Args<'_>) -> RuleResult<Dims> {
    let rank = rank(args, 0, "batch, channels")?;
    same_rank(args, 1, rank, "output channels, channels of a group")?;
    let (input, weight) = (args.tensor(0)?.sizes(), args.tensor(1)?.sizes());
    let moves = Moves::of(args, rank)?;
    let channels = moves.channels(args, input[1], "input")?;
    moves.channels(args, weight[0], "output")?;
    if weight[1] != channels {
        let groups = if moves.groups == 1 { "1 group".into() } else { format!("{} groups", moves.groups) };
        let whole = weight[1].saturating_mul(moves.groups);
        let expected = format!("of shape [_, {whole}, ..], for {groups} of a weight of shape {weight:?}");
        return Err(wrong_shape(args, 0, expected, input));
    }
    match args.optional_tensor(2)? {
        Some(bias) if bias.sizes() != [weight[0]] => {
            let expected = format!("of shape [{}], a number for each output channel", weight[0]);
            return Err(wrong_shape(args, 2, expected, bias.sizes()));
        }
        _ => {}
    }
    let spatial = moves.outputs(args, 1, &input[2..], &weight[2..])?;
    Ok(joined(input[0], weight[0], &spatial))
}

/// The plan of an op that is linear in arguments 0 and 1; the arguments of the mask are promoted.
pub(super) fn product_plan(args: &Args<'_>, promoted: u32, sizes: Dims) -> RuleResult<Plan> {
    let dtype = args.promote(promoted)?;
    require(args, 0, dtype, dtype.is_float(), "a float dtype")?;
    let mut plan = Plan::one(dtype, sizes, dtype, Strides::Images(FIRST_TWO));
    plan.cast = promoted;
    Ok(plan)
}

/// Arguments 3 to 6 of a call, in the form in which the other two ops take them.
pub(super) fn moves<'a>(b: &Backward<'a>) -> [Arg<'a>; 4] {
    [3, 4, 5, 6].map(|i| b.arg(i))
}

/// The sizes of the spatial dimensions, as a list argument.
pub(super) fn spatial(sizes: &[usize]) -> Vec<i64> {
    sizes[2..].iter().map(|&size| size as i64).collect()
}

/// Calls one of the three ops with its tensors, its third argument, and the last four arguments.
pub(super) fn call(
    def: &'static OpDef,
    [a, b]: [&Tensor; 2],
    third: Arg<'_>,
    [stride, padding, dilation, groups]: [Arg<'_>; 4],
) -> Result<Tensor> {
    def.run(&[a.into(), b.into(), third, stride, padding, dilation, groups])
}

fn with_bias(case: Case, bias: bool) -> Sample {
    let bias = if bias { plain(&case.weight[..1]) } else { SampleArg::None };
    sample([plain(&case.input), plain(&case.weight), bias].into_iter().chain(case.moves))
}

fn errors() -> Vec<ErrorSample> {
    let call =
        |input: &[usize], weight: &[usize], [stride, padding, dilation]: [&[i64]; 3], groups, message| {
            let lists = [stride, padding, dilation].map(|list| SampleArg::Ints(list.to_vec()));
            let tensors = [plain(input), plain(weight), SampleArg::None];
            error(tensors.into_iter().chain(lists).chain([SampleArg::Int(groups)]), message)
        };
    let one: [&[i64]; 3] = [&[1, 1], &[0, 0], &[1, 1]];
    let plain_case = case(&[1, 2, 4, 4], &[3, 2, 3, 3], one, 1);
    let wrong_bias = [plain(&plain_case.input), plain(&plain_case.weight), plain(&[2])];
    let (image, kernel) = (&[1, 4, 4, 4][..], &[4, 4, 3, 3][..]);
    vec![
        error(wrong_bias.into_iter().chain(plain_case.moves), "of shape [3]"),
        call(&[4, 4], kernel, one, 1, "of 3 to 5 dimensions"),
        call(image, &[4, 4, 3], one, 1, "of 4 dimensions"),
        call(image, &[4, 3, 3, 3], one, 1, "for 1 group of a weight"),
        call(image, kernel, one, 2, "for 2 groups of a weight"),
        call(image, kernel, one, 3, "a divisor of the 4 input channels"),
        call(image, &[3, 2, 3, 3], one, 2, "a divisor of the 3 output channels"),
        call(image, kernel, one, 0, "1 or more groups"),
        call(image, kernel, [&[0, 1], &[0, 0], &[1, 1]], 1, "2 numbers of 1 or more"),
        call(image, kernel, [&[1], &[0, 0], &[1, 1]], 1, "2 numbers of 1 or more"),
        call(image, kernel, [&[1, 1], &[0, -1], &[1, 1]], 1, "2 numbers of 0 or more"),
        call(image, kernel, [&[1, 1], &[0, 0], &[1, 2]], 1, "reaches over 5 elements of 4"),
        call(image, &[4, 4, 7, 3], [&[1, 1], &[1, 1], &[1, 1]], 1, "reaches over 7 elements of 6"),
        call(image, &[4, 4, 0, 3], one, 1, "a kernel of 1 or more elements"),
    ]
}

/// `conv`: cross-correlation of `[batch, channels, spatial..]` with a weight `[output channels, channels / groups, kernel..]`:
/// at each position of the kernel in the padded input, the sum of products per output channel.
pub static DEF: OpDef = OpDef::new(
    "conv(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, \
     int groups) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(FIRST_TWO, |b, g| {
        let grad = b.grad(0)?;
        g.set(0, || {
            let sizes = spatial(b.sizes(0));
            call(&conv_input_grad::DEF, [grad, &b.input(1)?], Arg::Ints(&sizes), moves(b))
        })?;
        g.set(1, || {
            let kernel = spatial(b.sizes(1));
            call(&conv_weight_grad::DEF, [grad, &b.input(0)?], Arg::Ints(&kernel), moves(b))
        })?;
        g.set(2, || {
            let dims: Vec<i64> = (0..grad.rank() as i64).filter(|&d| d != 1).collect();
            grad.sum(&dims)
        })
    }),
    || cases().into_iter().enumerate().map(|(i, case)| with_bias(case, i % 3 != 1)).collect(),
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.with(OpFlags::AUTOCAST);
