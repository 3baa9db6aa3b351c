//! `grid_sample_input_grad`
//!
//! Arguments:
//! - `mode`: `bilinear`, `nearest` or `bicubic`.

use super::grid_taps::{CASES, Case, Reading, Sampled, check_grid, check_rank, filled};
use super::{grid_sample, grid_sample_grid_grad};
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, in_format_of, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::pool::{sizes, spatial, with_spatial};
use crate::ops::rules::{FIRST_TWO, kept};
use crate::ops::sample::{SampleArg, error, plain, sample};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let grad = float_tensor(args, 0)?;
    let rank = check_rank(args, 0, Reading::of(args, 3)?, 3)?;
    check_grid(args, 1, (0, rank), Some(&grad.sizes()[2..]))?;
    let sizes = with_spatial(grad.sizes(), &sizes(args, 2, rank)?);
    let strides = kept(grad, &sizes);
    Ok(Plan::one(grad.dtype(), sizes, grad.dtype(), strides))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (own, grid) = (tensor(args, 0)?, cast(tensor(args, 1)?, DType::F64)?);
    let grad = widened(&own)?;
    let sizes = with_spatial(grad.shape(), &sizes(args, 2, grad.rank() - 2)?);
    let (spatial, [batch, channels]) = (&sizes[2..], [sizes[0], sizes[1]]);
    let flat = grad.reshape_as_sizes(&[batch, channels, grad.shape()[2..].iter().product()])?;
    let sampled = Sampled::of(&grid, spatial, Reading::of(args, 3)?, (grad.dtype(), false))?;
    let made = sampled.scattered(&flat, spatial.iter().product())?;
    cast(in_format_of(&own, made.reshape_as_sizes(&sizes)?)?, own.dtype())
}

/// `grid_sample_input_grad`: the gradient of `grid_sample` with respect to its images, whose spatial sizes are `input_sizes`:
/// scatters each element of `grad` to its taps, times their weights.
pub static DEF: OpDef = OpDef::new(
    "grid_sample_input_grad(Tensor grad, Tensor grid, int[] input_sizes, str mode, str padding_mode, \
     bool align_corners) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(FIRST_TWO, |b, g| {
        // The op is linear in `grad`, and the inner product of its result with any images is that of `grad` with their samples.
        let (images, [mode, padding, align]) = (b.grad(0)?, [3, 4, 5].map(|i| b.arg(i)));
        g.set(0, || grid_sample::DEF.run(&[images.into(), (&b.input(1)?).into(), mode, padding, align]))?;
        g.set(1, || {
            let (grad, grid) = (b.input(0)?, b.input(1)?);
            let tensors = [(&grad).into(), images.into(), (&grid).into()];
            let args: Vec<_> = tensors.into_iter().chain([mode, padding, align]).collect();
            grid_sample_grid_grad::DEF.run(&args)
        })
    }),
    || {
        let one = |case: &Case| {
            let [_, grad, grid, options @ ..] = filled(case);
            sample([grad, grid, SampleArg::Ints(spatial(case.0))].into_iter().chain(options))
        };
        CASES.iter().map(one).collect()
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |grad: &[usize], grid: &[usize], sizes: &[i64], mode, message| {
        let tensors = [plain(grad), plain(grid), SampleArg::Ints(sizes.to_vec())];
        let options = [SampleArg::Str(mode), SampleArg::Str("zeros"), SampleArg::Bool(false)];
        error(tensors.into_iter().chain(options), message)
    };
    let (grad, grid): (&[usize], &[usize]) = (&[2, 3, 2, 5], &[2, 2, 5, 2]);
    vec![
        call(&[3, 4], grid, &[4], "bilinear", "of 3 to 5 dimensions"),
        call(&[2, 3, 4], grid, &[4], "bilinear", "of 4 or 5 dimensions"),
        call(grad, grid, &[4], "bilinear", "2 numbers of 1 or more"),
        call(grad, grid, &[4, 0], "bilinear", "2 numbers of 1 or more"),
        call(grad, &[2, 5, 2, 2], &[4, 4], "bilinear", "of 4 dimensions, [2, 2, 5, 2]"),
        call(grad, &[1, 2, 5, 2], &[4, 4], "bilinear", "of 4 dimensions, [2, 2, 5, 2]"),
        call(grad, grid, &[4, 4], "cubic", "`bicubic`"),
    ]
})
.decomposed(|args| one(compose(args)));
