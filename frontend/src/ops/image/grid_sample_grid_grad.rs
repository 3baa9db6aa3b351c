//! `grid_sample_grid_grad`
//!
//! Arguments:
//! - `mode`: `bilinear`, `nearest` or `bicubic`.

use super::grid_taps::{CASES, Case, Reading, Sampled, check_grid, check_pixels, check_rank, filled};
use super::options::GridMode;
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, in_format_of, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{kept, require, wrong_shape};
use crate::ops::sample::{SampleArg, error, plain, sample};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (grad, x) = (float_tensor(args, 0)?, args.tensor(1)?);
    let rank = check_rank(args, 0, Reading::of(args, 3)?, 3)?;
    require(args, 1, x.dtype(), x.dtype() == grad.dtype(), "of the gradient's dtype")?;
    let [batch, channels] = [grad.sizes()[0], grad.sizes()[1]];
    if x.sizes().len() != rank + 2 || x.sizes()[..2] != [batch, channels] {
        let expected = format!("of {} dimensions, [{batch}, {channels}, ..]", rank + 2);
        return Err(wrong_shape(args, 1, expected, x.sizes()));
    }
    check_pixels(args, 1)?;
    check_grid(args, 2, (0, rank), Some(&grad.sizes()[2..]))?;
    let grid = args.tensor(2)?;
    Ok(Plan::one(grad.dtype(), Dims::from_slice(grid.sizes()), grad.dtype(), kept(grid, grid.sizes())))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let own = tensor(args, 0)?;
    let own_grid = tensor(args, 2)?;
    let (grad, x) = (widened(&own)?, widened(&tensor(args, 1)?)?);
    let grid = cast(own_grid.clone(), DType::F64)?;
    let reading = Reading::of(args, 3)?;
    let places = grad.shape()[2..].iter().product();
    let flat = grad.reshape_as_sizes(&[grad.shape()[0], grad.shape()[1], places])?;
    let made = Sampled::of(&grid, &x.shape()[2..], reading, (x.dtype(), true))?.by_places(&x, &flat)?;
    let mut made = made.reshape_as_sizes(grid.shape())?;
    if reading.mode == GridMode::Nearest {
        // Infinity times a slope of 0 is NaN. No location is below minus infinity.
        made = grid.lt(f64::NEG_INFINITY)?.where_cond(&made, 0)?;
    }
    cast(in_format_of(&own_grid, made)?, own.dtype())
}

/// `grid_sample_grid_grad`: the gradient of `grid_sample` with respect to its grid: for each location, the sum over channels
/// and taps of `grad * tap`, times the derivative of the tap's weight with respect to the location. It is 0 for locations that
/// padding clamped to the border and with `nearest`.
pub static DEF: OpDef = OpDef::new(
    "grid_sample_grid_grad(Tensor grad, Tensor input, Tensor grid, str mode, str padding_mode, \
     bool align_corners) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    || {
        let one = |case: &Case| {
            let [x, grad, grid, options @ ..] = filled(case);
            let made = sample([grad, x, grid].into_iter().chain(options));
            match case.2 {
                "bicubic" => made.tolerance_factor(16.0, "many terms whose slopes differ in sign"),
                _ => made,
            }
        };
        CASES.iter().map(one).collect()
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |grad: &[usize], x: &[usize], grid: &[usize], mode, message| {
        let options = [SampleArg::Str(mode), SampleArg::Str("zeros"), SampleArg::Bool(false)];
        error([plain(grad), plain(x), plain(grid)].into_iter().chain(options), message)
    };
    let (grad, x, grid): (&[usize], &[usize], &[usize]) = (&[2, 3, 2, 5], &[2, 3, 4, 4], &[2, 2, 5, 2]);
    vec![
        call(&[3, 4], x, grid, "bilinear", "of 3 to 5 dimensions"),
        call(&[2, 3, 4], x, grid, "bilinear", "of 4 or 5 dimensions"),
        call(grad, &[2, 2, 4, 4], grid, "bilinear", "of 4 dimensions, [2, 3, ..]"),
        call(grad, &[2, 3, 4], grid, "bilinear", "of 4 dimensions, [2, 3, ..]"),
        call(grad, &[2, 3, 0, 4], grid, "bilinear", "1 or more elements in each spatial dimension"),
        call(grad, x, &[2, 5, 2, 2], "bilinear", "of 4 dimensions, [2, 2, 5, 2]"),
        call(grad, x, grid, "cubic", "`bicubic`"),
    ]
})
.decomposed(|args| one(compose(args)));
