//! `grid_sample`
//!
//! Arguments:
//! - `mode`: `bilinear`, `nearest` or `bicubic`.

use super::grid_taps::{CASES, Case, Reading, Sampled, check_grid, check_pixels, check_rank, filled};
use super::options::GridOptions;
use super::{grid_sample_grid_grad, grid_sample_input_grad};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, in_format_of, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::pool::{spatial, with_spatial};
use crate::ops::rules::{FIRST_TWO, kept};
use crate::ops::sample::{ErrorSample, SampleArg, error, plain, sample};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Samples images `[batch, channels, height, width]` at the locations of a grid `[batch, rows, columns, 2]`; the result is
    /// `[batch, channels, rows, columns]`. For volumes the grid is `[batch, layers, rows, columns, 3]`. A location is
    /// `(x, y, ..)` in -1..1, the last dimension first; [`Tensor::affine_grid`] computes such grids (M. Jaderberg and others,
    /// "Spatial transformer networks", 2015). Interpolation is bilinear, pixels outside the image are 0; a NaN or infinite
    /// location gives 0 (PyTorch: NaN).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_vec(vec![1.0f32, 3.0], (1, 1, 1, 2))?;
    /// let grid = Tensor::from_vec(vec![0.0f32, 0.0, 0.5, 0.0], (1, 1, 2, 2))?;
    /// assert_eq!(x.grid_sample(&grid)?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Images or a grid of another rank, or of incompatible sizes; different dtypes, a dtype that is not a float; images
    /// without pixels.
    pub fn grid_sample(&self, grid: &Tensor) -> Result<Tensor> {
        self.grid_sample_with(grid, GridOptions::default())
    }

    /// [`Tensor::grid_sample`] with options. An infinite location with `Reflection`, which has no limit, gives 0 (PyTorch reads
    /// a border pixel, and gives NaN with `Bicubic`). With `Border` it reads the border, but gives NaN with `Bicubic`, as in
    /// PyTorch, and 0 along a dimension of one pixel with aligned corners. A NaN location gives 0 with all options; PyTorch
    /// gives NaN with `Bicubic` and with `Bilinear` and `Zeros`, and reads a pixel otherwise. If locations may be NaN, check
    /// the grid.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{GridMode, GridOptions}};
    /// let x = Tensor::from_vec(vec![1.0f32, 3.0], (1, 1, 1, 2))?;
    /// let grid = Tensor::from_vec(vec![-0.2f32, 0.0, 0.5, 0.0], (1, 1, 2, 2))?;
    /// let nearest = GridOptions { mode: GridMode::Nearest, ..GridOptions::default() };
    /// assert_eq!(x.grid_sample_with(&grid, nearest)?.to_vec::<f32>()?, [1.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; `Bicubic` for volumes.
    pub fn grid_sample_with(&self, grid: &Tensor, options: GridOptions) -> Result<Tensor> {
        let GridOptions { mode, padding, align_corners } = options;
        let [mode, padding] = Reading { mode, padding, align_corners }.names().map(Arg::Str);
        DEF.run(&[self.into(), grid.into(), mode, padding, Arg::Bool(align_corners)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let x = float_tensor(args, 0)?;
    let rank = check_rank(args, 0, Reading::of(args, 2)?, 2)?;
    check_pixels(args, 0)?;
    check_grid(args, 1, (0, rank), None)?;
    let sizes = with_spatial(x.sizes(), &args.tensor(1)?.sizes()[1..=rank]);
    let strides = kept(x, &sizes);
    Ok(Plan::one(x.dtype(), sizes, x.dtype(), strides))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (own, grid) = (tensor(args, 0)?, widened(&tensor(args, 1)?)?);
    let x = widened(&own)?;
    let sizes = with_spatial(x.shape(), &grid.shape()[1..x.rank() - 1]);
    let reading = Reading::of(args, 2)?;
    let made = Sampled::of(&grid, &x.shape()[2..], reading, (x.dtype(), false))?.gathered(&x)?;
    cast(in_format_of(&own, made.reshape_as_sizes(&sizes)?)?, own.dtype())
}

fn errors() -> Vec<ErrorSample> {
    let call = |x: &[usize], grid: &[usize], mode, padding, message| {
        let names = [mode, padding].map(SampleArg::Str);
        error([plain(x), plain(grid)].into_iter().chain(names).chain([SampleArg::Bool(false)]), message)
    };
    let zeros = |x: &[usize], grid: &[usize], message| call(x, grid, "bilinear", "zeros", message);
    let (x, grid): (&[usize], &[usize]) = (&[2, 3, 3, 4], &[2, 2, 2, 2]);
    vec![
        zeros(&[3, 4], grid, "of 3 to 5 dimensions"),
        zeros(&[2, 3, 4], grid, "of 4 or 5 dimensions"),
        zeros(&[2, 3, 0, 4], grid, "1 or more elements in each spatial dimension"),
        zeros(x, &[2, 2, 2], "of 4 dimensions, [2, .., 2]"),
        zeros(x, &[1, 2, 2, 2], "of 4 dimensions, [2, .., 2]"),
        zeros(x, &[2, 2, 2, 3], "of 4 dimensions, [2, .., 2]"),
        call(x, grid, "linear", "zeros", "`bicubic`"),
        call(x, grid, "bilinear", "mirror", "`reflection`"),
        call(&[1, 2, 2, 2, 2], &[1, 2, 2, 2, 3], "bicubic", "zeros", "`bilinear` or `nearest` for volumes"),
    ]
}

/// `grid_sample`
pub static DEF: OpDef = OpDef::new(
    "grid_sample(Tensor input, Tensor grid, str mode=bilinear, str padding_mode=zeros, \
     bool align_corners=False) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(FIRST_TWO, |b, g| {
        let (grad, [mode, padding, align]) = (b.grad(0)?, [2, 3, 4].map(|i| b.arg(i)));
        g.set(0, || {
            let (grid, sizes) = (b.input(1)?, spatial(b.sizes(0)));
            let args = [grad.into(), (&grid).into(), Arg::Ints(&sizes), mode, padding, align];
            grid_sample_input_grad::DEF.run(&args)
        })?;
        g.set(1, || {
            let (x, grid) = (b.input(0)?, b.input(1)?);
            grid_sample_grid_grad::DEF.run(&[grad.into(), (&x).into(), (&grid).into(), mode, padding, align])
        })
    }),
    || {
        let one = |case: &Case| {
            let [x, _, grid, options @ ..] = filled(case);
            sample([x, grid].into_iter().chain(options))
        };
        CASES.iter().map(one).collect()
    },
)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.decomposed(|args| one(compose(args)));
