//! `avg_pool`

use super::avg_pool_backward;
use super::geometry::{Window, rank, spatial, with_spatial};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::rules::{FIRST, wrong_value};
use crate::ops::sample::{ErrorSample, Sample, SampleArg, error, plain, sample};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

/// Checks the arguments from `at` on, `ceil_mode` (which is checked with the window), `count_include_pad` and the divisor.
pub(super) fn check_divisor(args: &Args<'_>, at: usize) -> RuleResult<()> {
    args.bool(at)?;
    match args.optional_int(at + 1)? {
        Some(..=0) => Err(wrong_value(args, at + 1, "1 or more".into())),
        _ => Ok(()),
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (rank, x) = (rank(args, 0)?, args.tensor(0)?);
    let places = Window::of(args, rank, 1, None, 4)?.places(args, &x.sizes()[2..])?;
    check_divisor(args, 5)?;
    Ok(Plan::one(x.dtype(), with_spatial(x.sizes(), &places), x.dtype(), Strides::Images(FIRST)))
}

/// A case: input sizes; kernel, stride and padding; `ceil_mode`, `count_include_pad`, and the divisor.
pub(super) type Case = (&'static [usize], [&'static [i64]; 3], bool, bool, Option<i64>);

/// The arguments of a case after its tensors.
pub(super) fn options(case: &Case) -> impl Iterator<Item = SampleArg> {
    let (_, lists, ceil, include, divisor) = case;
    let lists = lists.map(|list| SampleArg::Ints(list.to_vec()));
    let divisor = divisor.map_or(SampleArg::None, SampleArg::Int);
    lists.into_iter().chain([SampleArg::Bool(*ceil), SampleArg::Bool(*include), divisor])
}

/// The samples of both ops, with the spatial sizes of the outputs.
pub(super) const CASES: [(Case, &[usize]); 12] = [
    ((&[2, 2, 7], [&[3], &[2], &[1]], false, true, None), &[4]),
    ((&[2, 3, 4, 5], [&[2, 2], &[2, 2], &[0, 0]], false, true, None), &[2, 2]),
    ((&[2, 3, 4, 5], [&[3, 3], &[1, 1], &[1, 1]], false, true, None), &[4, 5]),
    ((&[2, 3, 4, 5], [&[3, 3], &[1, 1], &[1, 1]], false, false, None), &[4, 5]),
    ((&[1, 2, 5, 6], [&[2, 3], &[2, 2], &[1, 1]], true, true, None), &[3, 4]),
    ((&[1, 2, 5, 6], [&[3, 2], &[3, 3], &[1, 0]], true, false, Some(5)), &[2, 2]),
    ((&[1, 2, 3, 4, 5], [&[2, 2, 3], &[1, 2, 2], &[0, 1, 1]], false, true, None), &[2, 3, 3]),
    ((&[1, 35, 3, 2], [&[2, 2], &[1, 1], &[1, 0]], false, true, None), &[4, 1]),
    ((&[2, 9, 1, 1], [&[1, 1], &[1, 1], &[0, 0]], false, true, None), &[1, 1]),
    ((&[1, 2, 2, 3], [&[3, 5], &[2, 3], &[0, 0]], true, true, None), &[1, 1]),
    ((&[2, 3, 2], [&[4], &[4], &[0]], true, false, None), &[1]),
    ((&[0, 2, 4, 4], [&[2, 2], &[2, 2], &[0, 0]], false, true, None), &[2, 2]),
];

fn samples() -> Vec<Sample> {
    CASES.iter().map(|(case, _)| sample([plain(case.0)].into_iter().chain(options(case)))).collect()
}

fn errors() -> Vec<ErrorSample> {
    let call = |case: Case, message| error([plain(case.0)].into_iter().chain(options(&case)), message);
    let two: &[i64] = &[2, 2];
    vec![
        call((&[4, 4], [two, two, &[0, 0]], false, true, None), "of 3 to 5 dimensions"),
        call((&[1, 2, 4, 4], [&[2, 0], two, &[0, 0]], false, true, None), "2 numbers of 1 or more"),
        call((&[1, 2, 4, 4], [two, &[0, 1], &[0, 0]], false, true, None), "2 numbers of 1 or more"),
        call((&[1, 2, 4, 4], [two, two, &[2, 0]], false, true, None), "at most half of the 2 elements"),
        call((&[1, 2, 4, 4], [&[2, 5], two, &[0, 0]], false, true, None), "reaches over 5 elements of 4"),
        call((&[1, 2, 4, 2], [&[2, 4], two, &[0, 0]], true, true, None), "reaches over 4 elements of 2"),
        call((&[1, 2, 4, 4], [two, two, &[0, 0]], false, true, Some(0)), "1 or more"),
    ]
}

/// `avg_pool`: the mean of each position of a sliding window.
pub static DEF: OpDef = OpDef::new(
    "avg_pool(Tensor self, int[] kernel_size, int[] stride, int[] padding, bool ceil_mode, \
     bool count_include_pad, int? divisor_override) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| {
        g.set(0, || {
            let sizes = spatial(b.sizes(0));
            let [kernel, stride, padding, ceil, include, divisor] = [1, 2, 3, 4, 5, 6].map(|i| b.arg(i));
            let sizes = Arg::Ints(&sizes);
            avg_pool_backward::DEF.run(&[
                b.grad(0)?.into(),
                sizes,
                kernel,
                stride,
                padding,
                ceil,
                include,
                divisor,
            ])
        })
    }),
    samples,
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(errors);
