//! `grid_sample`

use super::options::{GridMode, GridOptions, GridPadding};
use crate::error::Result;
use crate::ops::composite::{cast, decomposed, float_tensor, in_format_of, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::pool::{rank, with_spatial};
use crate::ops::rules::{kept, require, wrong_shape, wrong_value};
use crate::ops::sample::{ErrorSample, Sample, SampleArg, error, plain, sample, uniform};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Part, Plan, Rule};

const MODES: [(GridMode, &str); 3] =
    [(GridMode::Bilinear, "bilinear"), (GridMode::Nearest, "nearest"), (GridMode::Bicubic, "bicubic")];
const PADDINGS: [(GridPadding, &str); 3] =
    [(GridPadding::Zeros, "zeros"), (GridPadding::Border, "border"), (GridPadding::Reflection, "reflection")];

fn name<T: PartialEq>(of: T, names: &[(T, &'static str)]) -> &'static str {
    names.iter().find(|(each, _)| *each == of).map_or("", |(_, name)| name)
}

/// The meaning of the text in argument `i`.
fn meant<T: Copy>(args: &Args<'_>, i: usize, names: &[(T, &'static str); 3]) -> RuleResult<T> {
    let text = args.str(i)?;
    match names.iter().find(|(_, name)| *name == text) {
        Some((each, _)) => Ok(*each),
        None => {
            let [a, b, c] = names.each_ref().map(|(_, name)| *name);
            Err(wrong_value(args, i, format!("`{a}`, `{b}` or `{c}`")))
        }
    }
}

impl Tensor {
    /// The pixels of images `[batch, channels, height, width]` at the places of a grid `[batch, rows, columns, 2]`: images
    /// `[batch, channels, rows, columns]`. Of volumes, a grid `[batch, layers, rows, columns, 3]`. A place is `(x, y, ..)` in
    /// -1..1, the last dimension first; [`Tensor::affine_grid`] makes such grids (M. Jaderberg and others, "Spatial transformer
    /// networks", 2015). Between pixels it is bilinear, outside the image 0; a place that is NaN gives 0.
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
    /// Images or a grid of another rank, or that do not fit each other; different dtypes, no float; images without pixels.
    pub fn grid_sample(&self, grid: &Tensor) -> Result<Tensor> {
        self.grid_sample_with(grid, GridOptions::default())
    }

    /// [`Tensor::grid_sample`] with these options. An infinite place with `Reflection`, which has no limit, gives 0 (PyTorch reads a
    /// pixel at the border there).
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
        let (mode, padding) = (name(options.mode, &MODES), name(options.padding, &PADDINGS));
        let align_corners = Arg::Bool(options.align_corners);
        DEF.run(&[self.into(), grid.into(), Arg::Str(mode), Arg::Str(padding), align_corners])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (x, grid) = (float_tensor(args, 0)?, args.tensor(1)?);
    let rank = match rank(args, 0)? {
        rank @ 2..=3 => rank,
        _ => {
            return Err(wrong_shape(
                args,
                0,
                "of 4 or 5 dimensions, [batch, channels, ..]".into(),
                x.sizes(),
            ));
        }
    };
    if x.sizes()[2..].contains(&0) {
        return Err(wrong_shape(
            args,
            0,
            "of 1 or more elements in each spatial dimension".into(),
            x.sizes(),
        ));
    }
    require(args, 1, grid.dtype(), grid.dtype() == x.dtype(), "of the images' dtype")?;
    let batch = x.sizes()[0];
    let fits = grid.ndim() == rank + 2 && grid.sizes()[0] == batch && grid.sizes()[rank + 1] == rank;
    if !fits {
        let text = format!("of {} dimensions, [{batch}, .., {rank}], a place for each pixel", rank + 2);
        return Err(wrong_shape(args, 1, text, grid.sizes()));
    }
    if meant(args, 2, &MODES)? == GridMode::Bicubic && rank != 2 {
        return Err(wrong_value(args, 2, "`bilinear` or `nearest` for volumes".into()));
    }
    meant(args, 3, &PADDINGS)?;
    args.bool(4)?;
    let sizes = with_spatial(x.sizes(), &grid.sizes()[1..=rank]);
    let strides = kept(x, &sizes);
    Ok(Plan::one(x.dtype(), sizes, x.dtype(), strides))
}

/// A spatial dimension of the images, and what lies outside.
#[derive(Clone, Copy)]
struct Side {
    size: usize,
    padding: GridPadding,
    align_corners: bool,
}

/// What each place reads, along a dimension or of a channel: which elements, and how much each counts,
/// `[batch, elements of a place, places]`.
struct Taps {
    at: Tensor,
    weight: Tensor,
}

impl Side {
    fn last(self) -> f64 {
        self.size as f64 - 1.0
    }

    /// Places in -1..1 in elements, counted from the centre of the first.
    fn elements(self, places: &Tensor) -> Result<Tensor> {
        let half = if self.align_corners { self.last() / 2.0 } else { self.size as f64 / 2.0 };
        places.add(1.0)?.mul(half)?.add(if self.align_corners { 0.0 } else { -0.5 })
    }

    /// Those outside moved inside, unless zeros lie there. A place that was moved to the border stays there: it has no gradient.
    fn padded(self, at: &Tensor) -> Result<Tensor> {
        let at = match self.padding {
            GridPadding::Zeros => return Ok(at.clone()),
            GridPadding::Border => at.clone(),
            GridPadding::Reflection => self.reflected(at)?,
        };
        let inside = at.gt(0.0)?.logical_and(&at.lt(self.last())?)?;
        inside.where_cond(&at, &at.detach().clamp(0.0, self.last())?)
    }

    /// Mirrored at the outermost centres, or outer edges, as often as needed.
    fn reflected(self, at: &Tensor) -> Result<Tensor> {
        let (low, span) = if self.align_corners { (0.0, self.last()) } else { (-0.5, self.size as f64) };
        if span == 0.0 {
            return at.mul(0.0);
        }
        let away = at.sub(low)?.abs()?;
        let rest = away.fmod(span)?;
        let odd = away.detach().div(span)?.floor()?.fmod(2.0)?.eq(1.0)?;
        odd.where_cond(&rest.mul(-1.0)?.add(span)?, &rest)?.add(low)
    }

    /// The elements at these whole places, each counting so much, and nothing outside.
    fn inside(self, at: &Tensor, weight: &Tensor) -> Result<Taps> {
        let at = at.detach();
        let inside = at.ge(0.0)?.logical_and(&at.le(self.last())?)?;
        let at = inside.where_cond(&at, 0)?.to_dtype(DType::I64)?;
        Ok(Taps { at, weight: inside.where_cond(weight, 0)? })
    }

    /// For places `[batch, 1, places]`.
    fn taps(self, places: &Tensor, mode: GridMode) -> Result<Taps> {
        let at = self.elements(places)?;
        // From these elements on so many.
        let following = |first: &Tensor, from: i64, count: i64| {
            let steps = Tensor::arange_with(from, from + count, 1, (first.dtype(), first.device()))?;
            first.add(&steps.unsqueeze(1)?)
        };
        match mode {
            GridMode::Nearest => {
                let near = self.padded(&at)?.round()?;
                // 1, with the gradient of a step, zeros, so that the grid has one.
                self.inside(&near, &near.sub(&near.detach())?.add(1.0)?)
            }
            GridMode::Bilinear => {
                let at = self.padded(&at)?;
                let first = at.detach().floor()?;
                let share = at.sub(&first)?;
                let rest = share.mul(-1.0)?.add(1.0)?;
                self.inside(&following(&first, 0, 2)?, &Tensor::cat(&[&rest, &share], 1)?)
            }
            GridMode::Bicubic => {
                let first = at.detach().floor()?;
                let weights = cubic(&at.sub(&first)?)?;
                self.inside(&self.padded(&following(&first, -1, 4)?)?, &Tensor::cat(&weights, 1)?)
            }
        }
    }
}

/// The weights of the four elements around a place that lies so far behind the second.
fn cubic(t: &Tensor) -> Result<[Tensor; 4]> {
    const A: f64 = -0.75;
    // For an element at most 1 away, and for one further away.
    let near = |d: &Tensor| d.mul(A + 2.0)?.add(-(A + 3.0))?.mul(d)?.mul(d)?.add(1.0);
    let far = |d: &Tensor| d.mul(A)?.add(-5.0 * A)?.mul(d)?.add(8.0 * A)?.mul(d)?.add(-4.0 * A);
    let rest = t.mul(-1.0)?.add(1.0)?;
    Ok([far(&t.add(1.0)?)?, near(t)?, near(&rest)?, far(&rest.add(1.0)?)?])
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (own, grid) = (tensor(args, 0)?, widened(&tensor(args, 1)?)?);
    let (mode, padding) = (meant(args, 2, &MODES)?, meant(args, 3, &PADDINGS)?);
    let align_corners = args.bool(4)?;
    let x = widened(&own)?;
    let (spatial, rank) = (&x.shape()[2..], x.rank() - 2);
    let [batch, channels] = [x.shape()[0], x.shape()[1]];
    let count: usize = grid.shape()[1..=rank].iter().product();
    let sizes = with_spatial(x.shape(), &grid.shape()[1..=rank]);
    let along = |d: usize| {
        let places = grid.select(-1, (rank - 1 - d) as i64)?.reshape_as_sizes(&[batch, 1, count])?;
        Side { size: spatial[d], padding, align_corners }.taps(&places, mode)
    };
    let Taps { at, weight } =
        (1..rank).try_fold(along(0)?, |taps, d| product(&taps, &along(d)?, spatial[d]))?;
    let each = at.shape()[1];
    let flat = x.reshape_as_sizes(&[batch, channels, spatial.iter().product()])?;
    let at = at.reshape_as_sizes(&[batch, 1, each * count])?.expand([batch, channels, each * count])?;
    let read = flat.gather(2, &at)?.reshape_as_sizes(&[batch, channels, each, count])?;
    let sum = read.mul(&weight.unsqueeze(1)?)?.sum(2)?;
    cast(in_format_of(&own, sum.reshape_as_sizes(&sizes)?)?, own.dtype())
}

/// Each of `outer` with each of `inner`, along a dimension of so many elements.
fn product(outer: &Taps, inner: &Taps, size: usize) -> Result<Taps> {
    let (rows, columns) = (outer.at.shape(), inner.at.shape());
    let sizes = [rows[0], rows[1] * columns[1], rows[2]];
    let at = outer.at.mul(size as i64)?.unsqueeze(2)?.add(&inner.at.unsqueeze(1)?)?;
    let weight = outer.weight.unsqueeze(2)?.mul(&inner.weight.unsqueeze(1)?)?;
    Ok(Taps { at: at.reshape_as_sizes(&sizes)?, weight: weight.reshape_as_sizes(&sizes)? })
}

fn call(
    x: &[usize],
    grid: SampleArg,
    mode: &'static str,
    padding: &'static str,
    align: bool,
) -> Vec<SampleArg> {
    vec![plain(x), grid, SampleArg::Str(mode), SampleArg::Str(padding), SampleArg::Bool(align)]
}

fn samples() -> Vec<Sample> {
    let case = |x: &[usize], to: &[usize], mode, padding, align| {
        let sizes: Vec<usize> = x[..1].iter().chain(to).copied().chain([to.len()]).collect();
        sample(call(x, uniform(&sizes, -1.4, 1.4), mode, padding, align))
    };
    vec![
        case(&[2, 3, 3, 4], &[2, 3], "bilinear", "zeros", false),
        case(&[2, 3, 4, 3], &[3, 2], "bilinear", "border", true),
        case(&[1, 2, 3, 4], &[3, 3], "bilinear", "reflection", false),
        case(&[1, 2, 4, 3], &[3, 3], "bilinear", "reflection", true),
        case(&[2, 2, 3, 4], &[2, 3], "nearest", "zeros", false),
        case(&[2, 2, 3, 4], &[2, 3], "nearest", "reflection", true),
        case(&[1, 2, 4, 5], &[2, 2], "bicubic", "zeros", false),
        case(&[1, 2, 4, 5], &[2, 2], "bicubic", "border", true),
        case(&[1, 2, 4, 5], &[2, 2], "bicubic", "reflection", false),
        case(&[1, 2, 2, 3, 4], &[2, 1, 3], "bilinear", "zeros", true),
        case(&[1, 2, 2, 3, 2], &[2, 2, 1], "bilinear", "border", false),
        case(&[1, 2, 3, 1, 2], &[1, 2, 2], "nearest", "border", false),
        case(&[0, 2, 3, 3], &[2, 2], "bilinear", "zeros", false),
    ]
}

fn errors() -> Vec<ErrorSample> {
    let plain_call = |x: &[usize], grid: &[usize], message| {
        error(call(x, plain(grid), "bilinear", "zeros", false), message)
    };
    let (x, grid): (&[usize], &[usize]) = (&[2, 3, 3, 4], &[2, 2, 2, 2]);
    vec![
        plain_call(&[3, 4], grid, "of 3 to 5 dimensions"),
        plain_call(&[2, 3, 4], grid, "of 4 or 5 dimensions"),
        plain_call(&[2, 3, 0, 4], grid, "1 or more elements in each spatial dimension"),
        plain_call(x, &[2, 2, 2], "of 4 dimensions, [2, .., 2]"),
        plain_call(x, &[1, 2, 2, 2], "of 4 dimensions, [2, .., 2]"),
        plain_call(x, &[2, 2, 2, 3], "of 4 dimensions, [2, .., 2]"),
        error(call(x, plain(grid), "linear", "zeros", false), "`bicubic`"),
        error(call(x, plain(grid), "bilinear", "mirror", false), "`reflection`"),
        error(
            call(&[1, 2, 2, 2, 2], plain(&[1, 2, 2, 2, 3]), "bicubic", "zeros", false),
            "`bilinear` or `nearest` for volumes",
        ),
    ]
}

/// `grid_sample`
pub static DEF: OpDef = OpDef {
    schema: "grid_sample(Tensor input, Tensor grid, str mode=bilinear, str padding_mode=zeros, bool align_corners=False) -> Tensor",
    rule: Rule::Structured(rule),
    decomposition: decomposed(
        |args| one(compose(args)),
        &[
            Part::widened("abs"),
            Part::widened("add"),
            Part::widened("arange"),
            Part::widened("cat"),
            Part::widened("clamp"),
            Part::widened("clone"),
            Part::widened("div"),
            Part::widened("eq"),
            Part::widened("floor"),
            Part::widened("fmod"),
            Part::widened("gather"),
            Part::widened("ge"),
            Part::widened("gt"),
            Part::widened("le"),
            Part::widened("lt"),
            Part::widened("mul"),
            Part::widened("round"),
            Part::widened("sub"),
            Part::widened("sum"),
            Part::widened("where"),
            Part::fixed("logical_and", DType::BOOL),
            Part::fixed("add", DType::I64),
            Part::fixed("mul", DType::I64),
            Part::fixed("to_dtype", DType::I64),
            Part::widened("to_dtype"),
            Part::new("to_dtype"),
        ],
    ),
    derivative: Derivative::Composite,
    forms: Forms::New,
    dtypes: Dtypes::FLOAT,
    samples,
    errors,
    entry: Entry::new(),
};
