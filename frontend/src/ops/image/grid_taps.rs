//! The sampling of images at the locations of a grid: the options of `grid_sample` and its gradients, and the
//! decomposition of all three.

use super::options::{GridMode, GridPadding};
use crate::error::Result;
use crate::ops::composite::cast;
use crate::ops::rules::{require, wrong_shape, wrong_value};
use crate::ops::sample::{SampleArg, plain, uniform};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Part};

const MODES: [(GridMode, &str); 3] =
    [(GridMode::Bilinear, "bilinear"), (GridMode::Nearest, "nearest"), (GridMode::Bicubic, "bicubic")];
const PADDINGS: [(GridPadding, &str); 3] =
    [(GridPadding::Zeros, "zeros"), (GridPadding::Border, "border"), (GridPadding::Reflection, "reflection")];

/// How images are read.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub mode: GridMode,
    pub padding: GridPadding,
    pub align_corners: bool,
}

impl Reading {
    /// Mode, padding mode and whether corners are aligned, in arguments `at` to `at + 2`.
    pub(super) fn of(args: &Args<'_>, at: usize) -> RuleResult<Reading> {
        let (mode, padding) = (meant(args, at, &MODES)?, meant(args, at + 1, &PADDINGS)?);
        Ok(Reading { mode, padding, align_corners: args.bool(at + 2)? })
    }

    /// The texts of mode and padding mode.
    pub(super) fn names(self) -> [&'static str; 2] {
        fn name<T: PartialEq>(of: T, names: &[(T, &'static str)]) -> &'static str {
            names.iter().find(|(each, _)| *each == of).map_or("", |(_, name)| name)
        }
        [name(self.mode, &MODES), name(self.padding, &PADDINGS)]
    }
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

/// Checks argument `i`, images or their gradient, of which a grid has places, and returns the number of spatial dimensions.
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

/// Checks that the grid in argument `i` is for images of `rank` spatial dimensions in argument `images`: a place for each pixel
/// of `places`, or for any number of them.
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
        let text = format!("of {} dimensions, [{batch}, {between}{rank}], a place for each pixel", rank + 2);
        return Err(wrong_shape(args, i, text, sizes));
    }
    Ok(())
}

/// What each place reads, along a dimension or of a channel, `[batch, elements of a place, places]`.
struct Taps {
    /// The elements, the first one in the place of what lies outside.
    at: Tensor,
    /// Which of them there are.
    inside: Tensor,
    /// How much each counts; 0 outside.
    weight: Tensor,
    /// The derivative of that by the place, where it was asked for.
    slope: Option<Tensor>,
}

impl Taps {
    /// How much each element counts, or the derivative of that.
    fn counted(&self, by_place: bool) -> &Tensor {
        self.slope.as_ref().filter(|_| by_place).unwrap_or(&self.weight)
    }
}

/// A spatial dimension of the images.
#[derive(Clone, Copy)]
struct Side {
    size: usize,
    reading: Reading,
}

impl Side {
    fn last(self) -> f64 {
        self.size as f64 - 1.0
    }

    /// Elements that a place moves on by where its coordinate, in -1..1, grows by 1.
    fn scale(self) -> f64 {
        if self.reading.align_corners { self.last() / 2.0 } else { self.size as f64 / 2.0 }
    }

    /// Places in -1..1 in elements, counted from the centre of the first.
    fn elements(self, places: &Tensor) -> Result<Tensor> {
        let first = if self.reading.align_corners { 0.0 } else { -0.5 };
        places.add(1.0)?.mul(self.scale())?.add(first)
    }

    /// Those outside moved inside, unless zeros lie there. A place that was moved to the border stays there: it has no gradient.
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

    /// The outermost centres, or outer edges, at which places are mirrored: the first, and how far away the other is.
    fn mirrors(self) -> (f64, f64) {
        if self.reading.align_corners { (0.0, self.last()) } else { (-0.5, self.size as f64) }
    }

    /// Mirrored as often as needed.
    fn reflected(self, at: &Tensor) -> Result<Tensor> {
        let (low, span) = self.mirrors();
        if span == 0.0 {
            return at.mul(0.0);
        }
        let rest = at.sub(low)?.abs()?.fmod(span)?;
        self.is_turned(at)?.where_cond(&rest.mul(-1.0)?.add(span)?, &rest)?.add(low)
    }

    /// Whether a place is mirrored an odd number of times, once it is on the inner side of the first mirror.
    fn is_turned(self, at: &Tensor) -> Result<Tensor> {
        let (low, span) = self.mirrors();
        at.detach().sub(low)?.abs()?.div(span)?.floor()?.fmod(2.0)?.eq(1.0)
    }

    /// How far a padded place goes on where it does by 1: back where it is mirrored, nowhere where it stays at the border; `None`
    /// where it goes as far everywhere.
    fn direction(self, at: &Tensor) -> Result<Option<Tensor>> {
        let at = at.detach();
        let sign = |turned: &Tensor| turned.to_dtype(at.dtype())?.mul(-2.0)?.add(1.0);
        let (padded, direction) = match self.reading.padding {
            GridPadding::Zeros => return Ok(None),
            GridPadding::Reflection if self.last() > 0.0 || !self.reading.align_corners => {
                let first = sign(&at.lt(self.mirrors().0)?)?;
                (self.reflected(&at)?, first.mul(&sign(&self.is_turned(&at)?)?)?)
            }
            // Of a single element all places are at the border.
            _ => (at.clone(), at.mul(0.0)?.add(1.0)?),
        };
        Ok(Some(self.is_within(&padded)?.where_cond(&direction, 0)?))
    }

    /// The elements at these whole places, each counting so much, and nothing outside.
    fn inside(self, at: &Tensor, weight: &Tensor, slope: Option<Tensor>) -> Result<Taps> {
        let at = at.detach();
        // The largest number of f32 that is no larger than the last element's: what that is rounded to may be.
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

    /// For places `[batch, 1, places]`, with slopes if they are wanted.
    fn taps(self, places: &Tensor, slopes: bool) -> Result<Taps> {
        let at = self.elements(places)?;
        // From these elements on so many.
        let following = |first: &Tensor, from: i64, count: i64| {
            let steps = Tensor::arange_with(from, from + count, 1, (first.dtype(), first.device()))?;
            first.add(&steps.unsqueeze(1)?)
        };
        match self.reading.mode {
            GridMode::Nearest => {
                let near = self.padded(&at)?.round()?;
                // 0, with the gradient of a step, zeros, so that the grid has one.
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

/// The weights of the four elements around a place that lies so far behind the second.
fn cubic(t: &Tensor) -> Result<[Tensor; 4]> {
    // For an element at most 1 away, and for one further away.
    let near = |d: &Tensor| d.mul(A + 2.0)?.add(-(A + 3.0))?.mul(d)?.mul(d)?.add(1.0);
    let far = |d: &Tensor| d.mul(A)?.add(-5.0 * A)?.mul(d)?.add(8.0 * A)?.mul(d)?.add(-4.0 * A);
    let rest = t.mul(-1.0)?.add(1.0)?;
    Ok([far(&t.add(1.0)?)?, near(t)?, near(&rest)?, far(&rest.add(1.0)?)?])
}

/// Their derivatives by `t`, times `scale`.
fn cubic_slope(t: &Tensor, scale: f64) -> Result<[Tensor; 4]> {
    let near = |d: &Tensor, scale: f64| d.mul(3.0 * (A + 2.0))?.add(-2.0 * (A + 3.0))?.mul(d)?.mul(scale);
    let far = |d: &Tensor, scale: f64| d.mul(3.0 * A)?.add(-10.0 * A)?.mul(d)?.add(8.0 * A)?.mul(scale);
    let rest = t.mul(-1.0)?.add(1.0)?;
    Ok([far(&t.add(1.0)?, scale)?, near(t, scale)?, near(&rest, -scale)?, far(&rest.add(1.0)?, -scale)?])
}

/// Each element of a place along one dimension, of `outer`, with each along another.
fn crossed(
    outer: &Tensor,
    inner: &Tensor,
    with: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let (rows, columns) = (outer.shape(), inner.shape());
    let sizes = [rows[0], rows[1] * columns[1], rows[2]];
    with(&outer.unsqueeze(2)?, &inner.unsqueeze(1)?)?.reshape_as_sizes(&sizes)
}

/// The elements of images of some sizes that the places of a grid read.
pub(super) struct Sampled {
    /// Of all elements of a channel, `[batch, 1, elements of a place * places]`, the first one in the place of what lies outside.
    at: Tensor,
    /// Which of them there are, and how much each counts, `[batch, 1, elements of a place, places]`.
    inside: Tensor,
    weight: Tensor,
    /// The derivative of that by each coordinate, where it was asked for.
    slopes: Vec<Tensor>,
    each: usize,
    places: usize,
}

impl Sampled {
    /// Of images of these spatial sizes, for a grid `[batch, .., rank]`: how much elements count in this dtype, and slopes if they are
    /// wanted.
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
        // How much elements count, or the derivative of that along one dimension.
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

    /// What images `[batch, channels, ..]` have there, `[batch, channels, elements of a place, places]`; anything outside.
    fn read(&self, x: &Tensor) -> Result<Tensor> {
        let [batch, channels] = [x.shape()[0], x.shape()[1]];
        let flat = x.reshape_as_sizes(&[batch, channels, x.shape()[2..].iter().product()])?;
        let at = self.at.expand([batch, channels, self.each * self.places])?;
        flat.gather(2, &at)?.reshape_as_sizes(&[batch, channels, self.each, self.places])
    }

    /// The pixels of images, `[batch, channels, places]`.
    pub(super) fn gathered(&self, x: &Tensor) -> Result<Tensor> {
        self.inside.where_cond(&self.read(x)?.mul(&self.weight)?, 0)?.sum(2)
    }

    /// The gradient of that by images of so many elements a channel, `[batch, channels, elements]`, for one of `[batch, channels,
    /// places]`.
    pub(super) fn scattered(&self, grad: &Tensor, elements: usize) -> Result<Tensor> {
        let [batch, channels] = [grad.shape()[0], grad.shape()[1]];
        let all = [batch, channels, self.each * self.places];
        let terms = self.inside.where_cond(&grad.unsqueeze(2)?.mul(&self.weight)?, 0)?;
        let zeros = Tensor::zeros_with([batch, channels, elements], (grad.dtype(), grad.device()))?;
        zeros.scatter_add(2, &self.at.expand(all)?, &terms.reshape_as_sizes(&all)?)
    }

    /// The gradient of that by the places, `[batch, places, axes]`.
    pub(super) fn by_places(&self, x: &Tensor, grad: &Tensor) -> Result<Tensor> {
        let products = self.read(x)?.mul(&grad.unsqueeze(2)?)?.sum(1)?;
        let products = self.inside.squeeze(1)?.where_cond(&products, 0)?;
        let axes = self.slopes.iter().map(|slope| products.mul(slope)?.sum(1));
        Tensor::stack(&axes.collect::<Result<Vec<_>>>()?, -1)
    }
}

/// The ops that taps are composed of, in what dtype `$places` says, and these.
macro_rules! parts {
    ($places:path; $($part:expr),*) => {
        &[
            $places("abs"),
            $places("add"),
            $places("arange"),
            $places("cat"),
            $places("clamp"),
            $places("clone"),
            $places("div"),
            $places("eq"),
            $places("floor"),
            $places("fmod"),
            $places("ge"),
            $places("gt"),
            $places("le"),
            $places("lt"),
            $places("mul"),
            $places("round"),
            $places("sub"),
            $places("to_dtype"),
            $places("where"),
            Part::widened("clone"),
            Part::widened("mul"),
            Part::widened("to_dtype"),
            Part::widened("where"),
            Part::fixed("logical_and", DType::BOOL),
            Part::fixed("add", DType::I64),
            Part::fixed("mul", DType::I64),
            Part::fixed("to_dtype", DType::I64),
            Part::new("to_dtype"),
            $($part),*
        ]
    };
}

/// A part of gradients, whose places are computed in f64: small weights lose their digits else, and are all that is left where
/// large elements cancel.
pub(super) const fn in_f64(op: &'static str) -> Part {
    Part::fixed(op, DType::F64)
}

pub(super) use parts;

/// A case of all three ops: sizes of the images, spatial sizes of the result; mode, padding mode, align_corners.
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

/// Images, the gradient of the result, the grid, and what follows them.
pub(super) fn filled(case: &Case) -> [SampleArg; 6] {
    let &(x, to, mode, padding, align) = case;
    let grid: Vec<usize> = x[..1].iter().chain(to).copied().chain([to.len()]).collect();
    let grad: Vec<usize> = x[..2].iter().chain(to).copied().collect();
    let [mode, padding] = [mode, padding].map(SampleArg::Str);
    [plain(x), plain(&grad), uniform(&grid, -1.4, 1.4), mode, padding, SampleArg::Bool(align)]
}
