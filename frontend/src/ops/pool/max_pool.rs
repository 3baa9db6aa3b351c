//! `max_pool`

use super::geometry::{Window, rank_of_numbers, spatial, with_spatial};
use super::max_pool_backward;
use crate::DType;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::FIRST;
use crate::ops::sample::{ErrorSample, Fill, Sample, SampleArg, error, sample, tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

/// The sizes of the result.
pub(super) fn result_sizes(args: &Args<'_>) -> RuleResult<Dims> {
    let (rank, x) = (rank_of_numbers(args, 0)?, args.tensor(0)?);
    let places = Window::of(args, rank, 1, Some(4), 5)?.places(args, &x.sizes()[2..])?;
    Ok(with_spatial(x.sizes(), &places))
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (sizes, strides, dtype) = (result_sizes(args)?, Strides::Images(FIRST), args.tensor(0)?.dtype());
    Ok(Plan::one(dtype, sizes.clone(), dtype, strides.clone()).and(sizes, DType::I64, strides))
}

fn call(sizes: &[usize], [kernel, stride, padding, dilation]: [&[i64]; 4], ceil: bool) -> Vec<SampleArg> {
    let lists = [kernel, stride, padding, dilation].map(|list| SampleArg::Ints(list.to_vec()));
    [tensor(sizes, Fill::Distinct(-2.0, 2.0))]
        .into_iter()
        .chain(lists)
        .chain([SampleArg::Bool(ceil)])
        .collect()
}

pub(super) fn samples() -> Vec<Sample> {
    let case = |sizes: &[usize], lists: [&[i64]; 4], ceil| sample(call(sizes, lists, ceil));
    vec![
        case(&[2, 2, 7], [&[3], &[2], &[1], &[1]], false),
        case(&[2, 3, 4, 5], [&[2, 2], &[2, 2], &[0, 0], &[1, 1]], false),
        case(&[2, 3, 4, 5], [&[3, 3], &[1, 1], &[1, 1], &[1, 1]], false),
        case(&[1, 2, 5, 6], [&[2, 3], &[2, 2], &[1, 1], &[1, 1]], true),
        case(&[1, 2, 6, 7], [&[2, 3], &[1, 2], &[0, 1], &[2, 2]], false),
        case(&[1, 1, 7, 4], [&[3, 2], &[3, 3], &[0, 0], &[1, 1]], true),
        case(&[1, 2, 3, 4, 5], [&[2, 2, 3], &[1, 2, 2], &[0, 1, 1], &[1, 1, 1]], false),
        case(&[1, 35, 3, 2], [&[2, 2], &[1, 1], &[1, 0], &[1, 1]], false),
        case(&[1, 2, 2, 3], [&[3, 5], &[2, 3], &[0, 0], &[1, 1]], true),
        case(&[1, 2, 3, 5], [&[3, 3], &[3, 3], &[1, 0], &[2, 3]], true),
        case(&[0, 2, 4, 4], [&[2, 2], &[2, 2], &[0, 0], &[1, 1]], false),
    ]
}

pub(super) fn errors() -> Vec<ErrorSample> {
    let one: &[i64] = &[1, 1];
    let (two, none): (&[i64], &[i64]) = (&[2, 2], &[0, 0]);
    let wrong = |sizes: &[usize], lists: [&[i64]; 4], message| error(call(sizes, lists, false), message);
    vec![
        wrong(&[4, 4], [two, two, none, one], "of 3 to 5 dimensions"),
        wrong(&[1, 2, 4, 4], [&[2], two, none, one], "2 numbers of 1 or more"),
        wrong(&[1, 2, 4, 4], [two, &[0, 1], none, one], "2 numbers of 1 or more"),
        wrong(&[1, 2, 4, 4], [two, two, &[-1, 0], one], "2 numbers of 0 or more"),
        wrong(&[1, 2, 4, 4], [two, two, &[2, 2], one], "at most half of the 2 elements"),
        wrong(&[1, 2, 4, 4], [&[5, 2], two, none, one], "reaches over 5 elements of 4"),
        wrong(&[1, 2, 4, 4], [two, two, none, &[4, 1]], "reaches over 5 elements of 4"),
        error(call(&[1, 2, 2, 4], [&[4, 2], two, none, one], true), "reaches over 4 elements of 2"),
        error(call(&[1, 2, 2, 4], [&[3, 2], &[1, 1], none, one], true), "reaches over 3 elements of 2"),
        wrong(&[1, 2, 3, 4], [two, two, &[1, 0], &[4, 1]], "a window that overlaps the image"),
        wrong(&[1, 2, 0, 4], [two, two, &[1, 0], one], "reaches over 2 elements of 2"),
    ]
}

/// `max_pool`: the maximum of each position of a sliding window, and its flat index in the spatial dimensions of its channel:
/// the first of equal elements, the last NaN.
pub static DEF: OpDef = OpDef::new(
    "max_pool(Tensor self, int[] kernel_size, int[] stride, int[] padding, int[] dilation, \
     bool ceil_mode) -> (Tensor, Tensor)",
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
    samples,
)
.dtypes(Dtypes::NUMERIC)
.errors(errors)
.with(OpFlags::EXACT);
