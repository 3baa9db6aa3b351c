//! Sampling of images at grid locations: the options of `grid_sample` and its gradients, and the decomposition of all three.
//! The taps of a location are the image elements that it is interpolated from.

use super::options::{GridMode, GridPadding};
use crate::error::Result;
use crate::ops::composite::cast;
use crate::ops::rules::{require, wrong_shape, wrong_value};
use crate::ops::sample::{SampleArg, plain, uniform};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::Args;

const MODES: [(GridMode, &str); 3] =
    [(GridMode::Bilinear, "bilinear"), (GridMode::Nearest, "nearest"), (GridMode::Bicubic, "bicubic")];
const PADDINGS: [(GridPadding, &str); 3] =
    [(GridPadding::Zeros, "zeros"), (GridPadding::Border, "border"), (GridPadding::Reflection, "reflection")];

/// The sampling options: mode, padding mode and `align_corners`.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub mode: GridMode,
    pub padding: GridPadding,
    pub align_corners: bool,
}

impl Reading {
    /// Reads mode, padding mode and `align_corners` from arguments `at` to `at + 2`.
    pub(super) fn of(args: &Args<'_>, at: usize) -> RuleResult<Reading> {
        let (mode, padding) = (meant(args, at, &MODES)?, meant(args, at + 1, &PADDINGS)?);
        Ok(Reading { mode, padding, align_corners: args.bool(at + 2)? })
    }

    /// The names of mode and padding mode.
    pub(super) fn names(self) -> [&'static str; 2] {
        fn name<T: PartialEq>(of: T, names: &[(T, &'static str)]) -> &'static str {
            names.iter().find(|(each, _)| *each == of).map_or("", |(_, name)| name)
        }
        [name(self.mode, &MODES), name(self.padding, &PADDINGS)]
    }
}

/// The variant that the text in argument `i` names.
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

/// Checks argument `i`, images or their gradient, and returns the number of spatial dimensions.
pub(super) fn check_rank(args: &Args<'_>, i: usize, reading: Reading, at: usize) -> RuleResult<usize> {
    match crate::ops::pool::rank(args, i)? {
        3 if reading.mode == GridMode::Bicubic => {
            Err(wrong_value(args, at, "`bilinear` or `nearest` for volumes".into()))
        }
        rank @ 2..=3 => Ok(rank),
        _ => {
            let expected = "of 4 or 5 dimensions, [batch, channels, ..]".to_string();
            Err(wrong_shape(args, i, expected, args.tensor(i)?.sizes()))
        }
    }
}

/// Checks that the images in argument `i` have elements to read.
pub(super) fn check_pixels(args: &Args<'_>, i: usize) -> RuleResult<()> {
    let sizes = args.tensor(i)?.sizes();
    if sizes[2..].contains(&0) {
        let expected = "of 1 or more elements in each spatial dimension".to_string();
        return Err(wrong_shape(args, i, expected, sizes));
    }
    Ok(())
}

/// Checks that the grid in argument `i` fits the images of `rank` spatial dimensions in argument `images`: one location for
/// each output pixel of `places`, or any number if that is `None`.
pub(super) fn check_grid(
    args: &Args<'_>,
    i: usize,
    (images, rank): (usize, usize),
    places: Option<&[usize]>,
) -> RuleResult<()> {
    let (grid, x) = (args.tensor(i)?, args.tensor(images)?);
    require(args, i, grid.dtype(), grid.dtype() == x.dtype(), "of the images' dtype")?;
    let (batch, sizes) = (x.sizes()[0], grid.sizes());
    let fits = sizes.len() == rank + 2
        && sizes[0] == batch
        && sizes[rank + 1] == rank
        && places.is_none_or(|places| sizes[1..=rank] == *places);
    if !fits {
        let between = match places {
            Some(places) => places.iter().map(|size| format!("{size}, ")).collect(),
            None => ".., ".to_string(),
        };
        let text =
            format!("of {} dimensions, [{batch}, {between}{rank}], coordinates for each pixel", rank + 2);
        return Err(wrong_shape(args, i, text, sizes));
    }
    Ok(())
}

/// The taps of each location, along one dimension or of a whole channel: `[batch, taps, locations]`.
struct Taps {
    /// The indices of the taps; 0 for taps outside the image.
    at: Tensor,
    /// Whether each tap is inside the image.
    inside: Tensor,
    /// The interpolation weight of each tap; 0 outside.
    weight: Tensor,
    /// The derivative of the weight with respect to the location, if requested.
    slope: Option<Tensor>,
}

impl Taps {
    /// The weight of each tap, or its derivative.
    fn counted(&self, by_place: bool) -> &Tensor {
        self.slope.as_ref().filter(|_| by_place).unwrap_or(&self.weight)
    }
}

/// One spatial dimension of the images.
#[derive(Clone, Copy)]
struct Side {
    size: usize,
    reading: Reading,
}

impl Side {
    fn last(self) -> f64 {
        self.size as f64 - 1.0
    }

    /// The derivative of the pixel index with respect to the location in -1..1.
    fn scale(self) -> f64 {
        if self.reading.align_corners { self.last() / 2.0 } else { self.size as f64 / 2.0 }
    }

    /// Converts locations in -1..1 to fractional pixel indices; 0 is the centre of the first pixel.
    fn elements(self, places: &Tensor) -> Result<Tensor> {
        let first = if self.reading.align_corners { 0.0 } else { -0.5 };
        places.add(1.0)?.mul(self.scale())?.add(first)
    }

    /// Applies the padding mode to pixel indices. An index clamped to the border is a constant: it has no gradient.
    fn padded(self, at: &Tensor) -> Result<Tensor> {
        let at = match self.reading.padding {
            GridPadding::Zeros => return Ok(at.clone()),
            GridPadding::Border => at.clone(),
            GridPadding::Reflection => self.reflected(at)?,
        };
        self.is_within(&at)?.where_cond(&at, &at.detach().clamp(0.0, self.last())?)
    }

    fn is_within(self, at: &Tensor) -> Result<Tensor> {
        at.gt(0.0)?.logical_and(&at.lt(self.last())?)
    }

    /// The reflection boundaries, the outermost centres or outer edges: the lower one, and the distance to the upper one.
    fn mirrors(self) -> (f64, f64) {
        if self.reading.align_corners { (0.0, self.last()) } else { (-0.5, self.size as f64) }
    }

    /// Reflects indices into the image, repeatedly if necessary.
    fn reflected(self, at: &Tensor) -> Result<Tensor> {
        let (low, span) = self.mirrors();
        if span == 0.0 {
            return at.mul(0.0);
        }
        let rest = at.sub(low)?.abs()?.fmod(span)?;
        self.is_turned(at)?.where_cond(&rest.mul(-1.0)?.add(span)?, &rest)?.add(low)
    }

    /// Whether an index, once `|at - low|` has reflected it at the lower boundary, is reflected an odd number of times.
    fn is_turned(self, at: &Tensor) -> Result<Tensor> {
        let (low, span) = self.mirrors();
        at.detach().sub(low)?.abs()?.div(span)?.floor()?.fmod(2.0)?.eq(1.0)
    }

    /// The derivative of the padded index with respect to the index: -1 if it is reflected, 0 if it is clamped; `None` if
    /// it is 1 everywhere.
    fn direction(self, at: &Tensor) -> Result<Option<Tensor>> {
        let at = at.detach();
        let sign = |is_reflected: &Tensor| is_reflected.to_dtype(at.dtype())?.mul(-2.0)?.add(1.0);
        let (padded, direction) = match self.reading.padding {
            GridPadding::Zeros => return Ok(None),
            GridPadding::Reflection if self.last() > 0.0 || !self.reading.align_corners => {
                let first = sign(&at.lt(self.mirrors().0)?)?;
                (self.reflected(&at)?, first.mul(&sign(&self.is_turned(&at)?)?)?)
            }
            // With a single pixel all indices are at the border.
            _ => (at.clone(), at.mul(0.0)?.add(1.0)?),
        };
        Ok(Some(self.is_within(&padded)?.where_cond(&direction, 0)?))
    }

    /// The taps at these integral indices with these weights; taps outside the image have weight 0.
    fn inside(self, at: &Tensor, weight: &Tensor, slope: Option<Tensor>) -> Result<Taps> {
        let at = at.detach();
        // The largest f32 not above the last index, which itself may round up.
        let last = match self.last() as f32 {
            rounded if at.dtype() == DType::F32 && f64::from(rounded) > self.last() => {
                rounded.next_down().into()
            }
            _ => self.last(),
        };
        let inside = at.ge(0.0)?.logical_and(&at.le(last)?)?;
        let at = inside.where_cond(&at, 0)?.to_dtype(DType::I64)?;
        let weight = inside.where_cond(weight, 0)?;
        let slope = slope.map(|slope| inside.where_cond(&slope, 0)).transpose()?;
        Ok(Taps { at, inside, weight, slope })
    }

    /// The taps of locations `[batch, 1, locations]`, with slopes if requested.
    fn taps(self, places: &Tensor, slopes: bool) -> Result<Taps> {
        let at = self.elements(places)?;
        // The indices `first + from .. first + from + count`.
        let following = |first: &Tensor, from: i64, count: i64| {
            let steps = Tensor::arange_with(from, from + count, 1, (first.dtype(), first.device()))?;
            first.add(&steps.unsqueeze(1)?)
        };
        match self.reading.mode {
            GridMode::Nearest => {
                let near = self.padded(&at)?.round()?;
                // Zeros that are connected to the graph, so that the grid has a (zero) gradient.
                let slope = near.sub(&near.detach())?;
                self.inside(&near, &slope.add(1.0)?, slopes.then_some(slope))
            }
            GridMode::Bilinear => {
                let moved = self.padded(&at)?;
                let first = moved.detach().floor()?;
                let share = moved.sub(&first)?;
                let slope = || {
                    let slope = match self.direction(&at)? {
                        Some(direction) => direction,
                        None => share.detach().mul(0.0)?.add(1.0)?,
                    };
                    Tensor::cat(&[slope.mul(-self.scale())?, slope.mul(self.scale())?], 1)
                };
                let slope = slopes.then(slope).transpose()?;
                let weight = Tensor::cat(&[share.mul(-1.0)?.add(1.0)?, share], 1)?;
                self.inside(&following(&first, 0, 2)?, &weight, slope)
            }
            GridMode::Bicubic => {
                let first = at.detach().floor()?;
                let share = at.sub(&first)?;
                let slope = || Tensor::cat(&cubic_slope(&share, self.scale())?, 1);
                let slope = slopes.then(slope).transpose()?;
                let weight = Tensor::cat(&cubic(&share)?, 1)?;
                self.inside(&self.padded(&following(&first, -1, 4)?)?, &weight, slope)
            }
        }
    }
}

/// `a` of R. Keys, "Cubic convolution interpolation", 1981.
const A: f64 = -0.75;

/// The weights of the four taps around an index at distance `t` (0 to 1) after the second tap.
fn cubic(t: &Tensor) -> Result<[Tensor; 4]> {
    // The kernel at distances up to 1, and from 1 to 2.
    let near = |d: &Tensor| d.mul(A + 2.0)?.add(-(A + 3.0))?.mul(d)?.mul(d)?.add(1.0);
    let far = |d: &Tensor| d.mul(A)?.add(-5.0 * A)?.mul(d)?.add(8.0 * A)?.mul(d)?.add(-4.0 * A);
    let rest = t.mul(-1.0)?.add(1.0)?;
    Ok([far(&t.add(1.0)?)?, near(t)?, near(&rest)?, far(&rest.add(1.0)?)?])
}

/// The derivatives of [`cubic`] with respect to `t`, times `scale`.
fn cubic_slope(t: &Tensor, scale: f64) -> Result<[Tensor; 4]> {
    let near = |d: &Tensor, scale: f64| d.mul(3.0 * (A + 2.0))?.add(-2.0 * (A + 3.0))?.mul(d)?.mul(scale);
    let far = |d: &Tensor, scale: f64| d.mul(3.0 * A)?.add(-10.0 * A)?.mul(d)?.add(8.0 * A)?.mul(scale);
    let rest = t.mul(-1.0)?.add(1.0)?;
    Ok([far(&t.add(1.0)?, scale)?, near(t, scale)?, near(&rest, -scale)?, far(&rest.add(1.0)?, -scale)?])
}

/// Combines each tap along `outer` with each tap along `inner`: `[batch, outer taps * inner taps, locations]`.
fn crossed(
    outer: &Tensor,
    inner: &Tensor,
    with: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let (rows, columns) = (outer.shape(), inner.shape());
    let sizes = [rows[0], rows[1] * columns[1], rows[2]];
    with(&outer.unsqueeze(2)?, &inner.unsqueeze(1)?)?.reshape_as_sizes(&sizes)
}

/// The taps of all grid locations in images of given sizes.
pub(super) struct Sampled {
    /// The flattened index of each tap in a channel, `[batch, 1, taps * locations]`; taps outside the image have a valid index.
    at: Tensor,
    /// Whether each tap is inside the image, and its weight, `[batch, 1, taps, locations]`.
    inside: Tensor,
    weight: Tensor,
    /// The derivative of the weight with respect to each coordinate, if requested.
    slopes: Vec<Tensor>,
    each: usize,
    places: usize,
}

impl Sampled {
    /// The taps in images of these spatial sizes for a grid `[batch, .., rank]`: weights in this dtype, and slopes if
    /// requested.
    pub(super) fn of(
        grid: &Tensor,
        spatial: &[usize],
        reading: Reading,
        (dtype, slopes): (DType, bool),
    ) -> Result<Sampled> {
        let (batch, rank) = (grid.shape()[0], spatial.len());
        let places: usize = grid.shape()[1..=rank].iter().product();
        let along = |d: usize| {
            let of_places = grid.select(-1, (rank - 1 - d) as i64)?.reshape_as_sizes(&[batch, 1, places])?;
            Side { size: spatial[d], reading }.taps(&of_places, slopes)
        };
        let along = (0..rank).map(along).collect::<Result<Vec<_>>>()?;
        // The product of the weights of all dimensions, with the derivative along one of them if `by` names it.
        let counted = |by: Option<usize>| {
            let of = |d: usize| along[d].counted(by == Some(d));
            let all = (1..rank).try_fold(of(0).clone(), |all, d| crossed(&all, of(d), |a, b| a.mul(b)));
            cast(all?, dtype)
        };
        let (mut at, mut inside) = (along[0].at.clone(), along[0].inside.clone());
        for (taps, &size) in along.iter().zip(spatial).skip(1) {
            at = crossed(&at.mul(size as i64)?, &taps.at, |a, b| a.add(b))?;
            inside = crossed(&inside, &taps.inside, |a, b| a.logical_and(b))?;
        }
        let each = at.shape()[1];
        let at = at.reshape_as_sizes(&[batch, 1, each * places])?;
        let axes = if slopes { rank } else { 0 };
        let slopes = (0..axes).map(|axis| counted(Some(rank - 1 - axis))).collect::<Result<_>>()?;
        let weight = counted(None)?;
        Ok(Sampled { at, inside: inside.unsqueeze(1)?, weight: weight.unsqueeze(1)?, slopes, each, places })
    }

    /// The values of images `[batch, channels, ..]` at the taps, `[batch, channels, taps, locations]`; unspecified outside.
    fn read(&self, x: &Tensor) -> Result<Tensor> {
        let [batch, channels] = [x.shape()[0], x.shape()[1]];
        let flat = x.reshape_as_sizes(&[batch, channels, x.shape()[2..].iter().product()])?;
        let at = self.at.expand([batch, channels, self.each * self.places])?;
        flat.gather(2, &at)?.reshape_as_sizes(&[batch, channels, self.each, self.places])
    }

    /// The samples of images: `[batch, channels, locations]`.
    pub(super) fn gathered(&self, x: &Tensor) -> Result<Tensor> {
        self.inside.where_cond(&self.read(x)?.mul(&self.weight)?, 0)?.sum(2)
    }

    /// The adjoint of [`Sampled::gathered`]: from a gradient `[batch, channels, locations]` to `[batch, channels, elements]`,
    /// where `elements` is the number of pixels of a channel.
    pub(super) fn scattered(&self, grad: &Tensor, elements: usize) -> Result<Tensor> {
        let [batch, channels] = [grad.shape()[0], grad.shape()[1]];
        let all = [batch, channels, self.each * self.places];
        let terms = self.inside.where_cond(&grad.unsqueeze(2)?.mul(&self.weight)?, 0)?;
        let zeros = Tensor::zeros_with([batch, channels, elements], (grad.dtype(), grad.device()))?;
        zeros.scatter_add(2, &self.at.expand(all)?, &terms.reshape_as_sizes(&all)?)
    }

    /// The gradient with respect to the locations, `[batch, locations, axes]`.
    pub(super) fn by_places(&self, x: &Tensor, grad: &Tensor) -> Result<Tensor> {
        let products = self.read(x)?.mul(&grad.unsqueeze(2)?)?.sum(1)?;
        let products = self.inside.squeeze(1)?.where_cond(&products, 0)?;
        let axes = self.slopes.iter().map(|slope| products.mul(slope)?.sum(1));
        Tensor::stack(&axes.collect::<Result<Vec<_>>>()?, -1)
    }
}

/// A case of all three ops: image sizes, spatial sizes of the result; mode, padding mode, `align_corners`.
pub(super) type Case = (&'static [usize], &'static [usize], &'static str, &'static str, bool);

pub(super) const CASES: [Case; 13] = [
    (&[2, 3, 3, 4], &[2, 3], "bilinear", "zeros", false),
    (&[2, 3, 4, 3], &[3, 2], "bilinear", "border", true),
    (&[1, 2, 3, 4], &[3, 3], "bilinear", "reflection", false),
    (&[1, 2, 4, 3], &[3, 3], "bilinear", "reflection", true),
    (&[2, 2, 3, 4], &[2, 3], "nearest", "zeros", false),
    (&[2, 2, 3, 4], &[2, 3], "nearest", "reflection", true),
    (&[1, 2, 4, 5], &[2, 2], "bicubic", "zeros", false),
    (&[1, 2, 4, 5], &[2, 2], "bicubic", "border", true),
    (&[1, 2, 4, 5], &[2, 2], "bicubic", "reflection", false),
    (&[1, 2, 2, 3, 4], &[2, 1, 3], "bilinear", "zeros", true),
    (&[1, 2, 2, 3, 2], &[2, 2, 1], "bilinear", "border", false),
    (&[1, 2, 3, 1, 2], &[1, 2, 2], "nearest", "border", false),
    (&[0, 2, 3, 3], &[2, 2], "bilinear", "zeros", false),
];

/// Images, output gradient, grid and options.
pub(super) fn filled(case: &Case) -> [SampleArg; 6] {
    let &(x, to, mode, padding, align) = case;
    let grid: Vec<usize> = x[..1].iter().chain(to).copied().chain([to.len()]).collect();
    let grad: Vec<usize> = x[..2].iter().chain(to).copied().collect();
    let [mode, padding] = [mode, padding].map(SampleArg::Str);
    [plain(x), plain(&grad), uniform(&grid, -1.4, 1.4), mode, padding, SampleArg::Bool(align)]
}
