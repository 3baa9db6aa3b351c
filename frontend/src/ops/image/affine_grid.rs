//! `affine_grid`
//!
//! Arguments:
//! - `theta`: affine maps, `[batch, 2, 3]` or `[batch, 3, 4]`.
//! - `size`: the sizes of the images, `[batch, channels, ..]`.

use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{wrong_shape, wrong_value};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use crate::tensor::IntoShape;
use crate::{DType, Device, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The sampling grid of [`Tensor::grid_sample`] for affine maps `self`: for maps `[batch, 2, 3]` and a size `[batch,
    /// channels, height, width]` a grid `[batch, height, width, 2]`; for maps `[batch, 3, 4]` and a size `[batch, channels,
    /// depth, height, width]` a grid `[batch, depth, height, width, 3]`. A location is `(x, y, ..)` in -1..1, the last
    /// dimension first; -1 and 1 are the outer edges of the outermost pixels.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let same = Tensor::from_vec(vec![1.0f32, 0.0, 0.0, 0.0, 1.0, 0.0], (1, 2, 3))?;
    /// let grid = same.affine_grid((1, 1, 1, 2))?;
    /// assert_eq!(grid.to_vec::<f32>()?, [-0.5, 0.0, 0.5, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Maps of another shape or not of a float dtype; a size of another rank, or with a 0.
    pub fn affine_grid(&self, size: impl IntoShape) -> Result<Tensor> {
        self.affine_grid_with(size, false)
    }

    /// [`Tensor::affine_grid`]; with `align_corners`, -1 and 1 are the centres of the outermost pixels.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let same = Tensor::from_vec(vec![1.0f32, 0.0, 0.0, 0.0, 1.0, 0.0], (1, 2, 3))?;
    /// let grid = same.affine_grid_with((1, 1, 1, 2), true)?;
    /// assert_eq!(grid.to_vec::<f32>()?, [-1.0, 0.0, 1.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn affine_grid_with(&self, size: impl IntoShape, align_corners: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(&size.into_ints()), Arg::Bool(align_corners)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (theta, size) = (float_tensor(args, 0)?, args.ints(1)?);
    args.bool(2)?;
    let &[batch, rows @ 2..=3, columns] = theta.sizes() else {
        return Err(wrong_shape(args, 0, "of shape [batch, 2, 3] or [batch, 3, 4]".into(), theta.sizes()));
    };
    if columns != rows + 1 {
        return Err(wrong_shape(args, 0, format!("of shape [_, {rows}, {}]", rows + 1), theta.sizes()));
    }
    if size.len() != rows + 2 || size[1..].iter().any(|&s| s < 1) || size[0] != batch as i64 {
        let text = format!("{} sizes, the batch of {batch}, and 1 or more of each other", rows + 2);
        return Err(wrong_value(args, 1, text));
    }
    let spatial = size[2..].iter().map(|&s| s as usize);
    let sizes: Dims = [batch].into_iter().chain(spatial).chain([rows]).collect();
    Ok(Plan::one(theta.dtype(), sizes, theta.dtype(), Strides::Contiguous))
}

/// The coordinates, from -1 to 1, of the centres of `count` pixels along a dimension.
fn centres(count: usize, align_corners: bool, dtype: DType, device: Device) -> Result<Tensor> {
    let last = match (count, align_corners) {
        (1, _) => 0.0,
        (_, true) => 1.0,
        (_, false) => (count - 1) as f64 / count as f64,
    };
    Tensor::linspace_with(-last, last, count, (dtype, device))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (own, size, align_corners) = (tensor(args, 0)?, &args.ints(1)?[2..], args.bool(2)?);
    let theta = widened(&own)?;
    let rank = size.len();
    // One column per dimension, the last dimension first, and a column of ones, in the shape of the grid.
    let column = |i: usize| -> Result<Tensor> {
        let mut sizes = vec![1; rank + 2];
        (sizes[0], sizes[rank + 1]) = (own.shape()[0], rank);
        theta.select(2, i)?.reshape_as_sizes(&sizes)
    };
    let mut grid = column(rank)?;
    for i in 0..rank {
        let d = rank - 1 - i;
        let mut sizes = vec![1; rank + 2];
        sizes[d + 1] = size[d] as usize;
        let along = centres(size[d] as usize, align_corners, theta.dtype(), theta.device())?;
        grid = grid.add(&along.reshape_as_sizes(&sizes)?.mul(&column(i)?)?)?;
    }
    cast(grid, own.dtype())
}

fn call(theta: &[usize], size: &[i64], align_corners: bool) -> Vec<SampleArg> {
    vec![plain(theta), SampleArg::Ints(size.to_vec()), SampleArg::Bool(align_corners)]
}

fn samples() -> Vec<Sample> {
    vec![
        sample(call(&[2, 2, 3], &[2, 1, 3, 4], false)),
        sample(call(&[2, 2, 3], &[2, 3, 3, 2], true)),
        sample(call(&[1, 2, 3], &[1, 1, 1, 5], true)),
        sample(call(&[1, 3, 4], &[1, 2, 2, 3, 2], false)),
        sample(call(&[2, 3, 4], &[2, 1, 1, 2, 3], true)),
        sample(call(&[0, 2, 3], &[0, 1, 2, 2], false)),
    ]
}

/// `affine_grid`
pub static DEF: OpDef = OpDef::new(
    "affine_grid(Tensor theta, int[] size, bool align_corners=False) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    vec![
        error(call(&[2, 3], &[2, 1, 3, 4], false), "of shape [batch, 2, 3]"),
        error(call(&[2, 2, 2], &[2, 1, 3, 4], false), "of shape [_, 2, 3]"),
        error(call(&[2, 2, 3], &[2, 1, 3, 4, 5], false), "4 sizes"),
        error(call(&[2, 2, 3], &[3, 1, 3, 4], false), "the batch of 2"),
        error(call(&[2, 2, 3], &[2, 1, 0, 4], false), "1 or more of each other"),
    ]
})
.decomposed(|args| one(compose(args)));
