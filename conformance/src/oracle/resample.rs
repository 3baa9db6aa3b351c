//! Resampling of images, including adaptive pooling, computed element by element.

use super::image::whole;
use super::number::float_total;
use super::pool::exceeds;
use super::{Family, Inputs, Unknown, Value};
use crate::array::{Array, Indices, Number, flat};
use keyway::DType;

/// The index of an element of a dimension, and its weight.
type Tap = (usize, f64);

/// The elements of a dimension of `size`, with weights, from which position `i` of `count` is interpolated.
fn interpolated(
    mode: &str,
    align: bool,
    scale: Option<f64>,
    size: usize,
    count: usize,
    i: usize,
) -> Vec<Tap> {
    let last = size - 1;
    let (step, shift) = match (mode, align, scale) {
        (_, true, _) => (if count > 1 { last as f64 / (count - 1) as f64 } else { 0.0 }, 0.0),
        (_, false, Some(scale)) => (1.0 / scale, 0.5),
        (_, false, None) => (size as f64 / count as f64, 0.5),
    };
    let at = (i as f64 + shift) * step - shift;
    let inside = |k: f64| k.clamp(0.0, last as f64) as usize;
    match mode {
        "nearest" | "nearest-exact" => {
            let half = if mode == "nearest" { 2 * i } else { 2 * i + 1 };
            // In integers, if there is no scale factor.
            let k = scale.map_or((half * size / (2 * count)) as f64, |s| (half as f64 / 2.0 / s).floor());
            vec![(inside(k), 1.0)]
        }
        "linear" => {
            let at = at.max(0.0);
            let first = at.floor().min(last as f64);
            let share = (at - first).min(1.0);
            vec![(inside(first), 1.0 - share), (inside(first + 1.0), share)]
        }
        _ => (-1..=2)
            .map(|k| (inside(at.floor() + f64::from(k)), keys(at - at.floor() - f64::from(k))))
            .collect(),
    }
}

/// Keys' cubic convolution kernel with a = -0.75.
fn keys(distance: f64) -> f64 {
    let (a, d) = (-0.75, distance.abs());
    match d {
        0.0..=1.0 => (a + 2.0) * d.powi(3) - (a + 3.0) * d.powi(2) + 1.0,
        1.0..2.0 => a * d.powi(3) - 5.0 * a * d.powi(2) + 8.0 * a * d - 4.0 * a,
        _ => 0.0,
    }
}

/// The taps of each output position of each spatial dimension, from sizes `from` to sizes `to`, according to arguments 2 to
/// 4.
fn resized(inputs: &Inputs, from: &[usize], to: &[usize]) -> Result<Vec<Vec<Vec<Tap>>>, Unknown> {
    let (mode, align) = (inputs.str(2)?, inputs.bool(3)?);
    let Value::Floats(scales) = inputs.get(4) else { return Err(Unknown("no factors".into())) };
    if from.contains(&0) || to.contains(&0) {
        return Err(Unknown("images without elements".into()));
    }
    let known = matches!(mode, "nearest" | "nearest-exact" | "linear") || mode == "cubic" && from.len() == 2;
    let fits = from.len() == to.len() && (scales.is_empty() || scales.len() == to.len());
    if !known || !fits || align && mode.starts_with("nearest") || scales.iter().any(|&s| s <= 0.0) {
        return Err(Unknown("another mode or other factors than there are".into()));
    }
    let along = |d: usize| {
        let one = |i| interpolated(mode, align, scales.get(d).copied(), from[d], to[d], i);
        (0..to[d]).map(one).collect()
    };
    Ok((0..to.len()).map(along).collect())
}

/// The input images, and the sizes in argument 1.
fn images(inputs: &Inputs) -> Result<(&Array, Vec<usize>), Unknown> {
    let (a, to) = sized(inputs)?;
    if a.sizes[2..].contains(&0) {
        return Err(Unknown("images without elements".into()));
    }
    Ok((a, to))
}

/// As [`images`], including images without elements.
fn sized(inputs: &Inputs) -> Result<(&Array, Vec<usize>), Unknown> {
    let (a, to) = (inputs.array(0)?, inputs.ints(1)?);
    let size = |&v: &i64| usize::try_from(v).map_err(|_| Unknown("a negative size".into()));
    let to = to.iter().map(size).collect::<Result<Vec<_>, _>>()?;
    if a.ndim() < 3 || a.ndim() != to.len() + 2 {
        return Err(Unknown("no images of that many dimensions".into()));
    }
    Ok((a, to))
}

/// The Cartesian product of the taps of the dimensions: the index, and the product of their weights.
fn together(taps: &[&[Tap]]) -> Vec<(Vec<usize>, f64)> {
    taps.iter().fold(vec![(Vec::new(), 1.0)], |made, along| {
        let with = |(index, weight): &(Vec<usize>, f64)| -> Vec<(Vec<usize>, f64)> {
            along.iter().map(|(at, w)| (index.iter().copied().chain([*at]).collect(), weight * w)).collect()
        };
        made.iter().flat_map(with).collect()
    })
}

fn taps_at<'a>(taps: &'a [Vec<Vec<Tap>>], position: &[usize]) -> Vec<&'a [Tap]> {
    taps.iter().zip(position).map(|(along, &i)| along[i].as_slice()).collect()
}

fn with_spatial(sizes: &[usize], spatial: &[usize]) -> Vec<usize> {
    sizes[..2].iter().chain(spatial).copied().collect()
}

/// The images of these taps.
fn gathered(a: &Array, to: &[usize], taps: &[Vec<Vec<Tap>>]) -> Vec<Array> {
    vec![Array::from_fn(a.dtype, with_spatial(&a.sizes, to), |index| {
        let terms: Vec<f64> = together(&taps_at(taps, &index[2..]))
            .iter()
            .map(|(at, weight)| a.at(&with_spatial(index, at)).float() * weight)
            .collect();
        float_total(a.dtype, &terms)
    })]
}

/// The gradient of [`gathered`] for images of these spatial sizes.
fn scattered(grad: &Array, spatial: &[usize], taps: &[Vec<Vec<Tap>>]) -> Vec<Array> {
    let sizes = with_spatial(&grad.sizes, spatial);
    let mut terms: Vec<Vec<f64>> = vec![Vec::new(); sizes.iter().product()];
    for (index, value) in Indices::new(&grad.sizes).zip(&grad.values) {
        for (at, weight) in together(&taps_at(taps, &index[2..])) {
            terms[flat(&sizes, &with_spatial(&index, &at))].push(value.float() * weight);
        }
    }
    let values = terms.iter().map(|terms| float_total(grad.dtype, terms)).collect();
    vec![Array::new(grad.dtype, sizes, values)]
}

fn interpolate(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, to) = images(inputs)?;
    Ok(gathered(a, &to, &resized(inputs, &a.sizes[2..], &to)?))
}

fn interpolate_backward(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (grad, spatial) = images(inputs)?;
    Ok(scattered(grad, &spatial, &resized(inputs, &spatial, &grad.sizes[2..])?))
}

/// The windows of adaptive pooling from sizes `from` to sizes `to`.
fn adaptive(from: &[usize], to: &[usize]) -> Vec<Vec<Vec<Tap>>> {
    let window = |size: usize, count: usize, i: usize| {
        let (begin, end) = (i * size / count, ((i + 1) * size).div_ceil(count));
        (begin..end).map(|at| (at, 1.0 / (end - begin) as f64)).collect()
    };
    let along = |(&size, &count): (&usize, &usize)| (0..count).map(|i| window(size, count, i)).collect();
    from.iter().zip(to).map(along).collect()
}

fn adaptive_avg_pool(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, to) = images(inputs)?;
    Ok(gathered(a, &to, &adaptive(&a.sizes[2..], &to)))
}

fn adaptive_avg_pool_backward(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (grad, spatial) = sized(inputs)?;
    if spatial.contains(&0) {
        return Err(Unknown("an image without elements".into()));
    }
    Ok(scattered(grad, &spatial, &adaptive(&spatial, &grad.sizes[2..])))
}

fn adaptive_max_pool(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, to) = images(inputs)?;
    let windows = adaptive(&a.sizes[2..], &to);
    let sizes = with_spatial(&a.sizes, &to);
    let (mut values, mut indices) = (Vec::new(), Vec::new());
    for index in Indices::new(&sizes) {
        let mut best: Option<(Number, usize)> = None;
        for (at, _) in together(&taps_at(&windows, &index[2..])) {
            let x = a.at(&with_spatial(&index, &at));
            if best.is_none_or(|(most, _)| exceeds(x, most)) {
                best = Some((x, flat(&a.sizes[2..], &at)));
            }
        }
        let Some((most, position)) = best else { return Err(Unknown("a window without elements".into())) };
        values.push(most);
        indices.push(Number::Int(position as i128));
    }
    Ok(vec![Array::new(a.dtype, sizes.clone(), values), Array::new(DType::I64, sizes, indices)])
}

/// A coordinate moved into the image: clamped to the border, after reflection if requested.
fn moved(at: f64, padding: &str, align: bool, size: usize) -> f64 {
    let last = size as f64 - 1.0;
    let (low, span) = if align { (0.0, last) } else { (-0.5, size as f64) };
    match padding {
        "zeros" => at,
        "reflection" if span == 0.0 => 0.0,
        "reflection" => {
            let away = (at - low).abs().rem_euclid(2.0 * span);
            (low + if away > span { 2.0 * span - away } else { away }).clamp(0.0, last)
        }
        _ => at.clamp(0.0, last),
    }
}

/// The derivative of the reflected coordinate with respect to the original one.
fn direction(at: f64, padding: &str, align: bool, size: usize) -> f64 {
    let last = size as f64 - 1.0;
    let there = moved(at, padding, align, size);
    match padding {
        "zeros" => 1.0,
        _ if !(there > 0.0 && there < last) => 0.0,
        "reflection" => {
            // Reflection divides the line into intervals that are traversed forward and backward alternately.
            let (low, span) = if align { (0.0, last) } else { (-0.5, last + 1.0) };
            if ((at - low) / span).floor().rem_euclid(2.0) == 0.0 { 1.0 } else { -1.0 }
        }
        _ => 1.0,
    }
}

/// The index of an element of a dimension, its weight, and the derivative of the weight by the coordinate.
type Moving = (usize, f64, f64);

/// The elements of a dimension that a coordinate in -1..1 is interpolated from.
fn sampled(position: f64, reading: &Reading<'_>, size: usize) -> Vec<Moving> {
    let &Reading { mode, padding, align } = reading;
    let last = size as f64 - 1.0;
    let scale = if align { last / 2.0 } else { size as f64 / 2.0 };
    let at = if align { (position + 1.0) / 2.0 * last } else { ((position + 1.0) * size as f64 - 1.0) / 2.0 };
    let inside = |(k, weight, slope): (f64, f64, f64)| {
        (0.0..=last).contains(&k).then_some((k as usize, weight, slope * scale))
    };
    let taps: Vec<(f64, f64, f64)> = match mode {
        "nearest" => vec![(moved(at, padding, align, size).round_ties_even(), 1.0, 0.0)],
        "bilinear" => {
            let slope = direction(at, padding, align, size);
            let at = moved(at, padding, align, size);
            let share = at - at.floor();
            vec![(at.floor(), 1.0 - share, -slope), (at.floor() + 1.0, share, slope)]
        }
        _ => (-1..=2)
            .map(|k| {
                let element = at.floor() + f64::from(k);
                let away = at - element;
                (moved(element, padding, align, size), keys(away), keys_slope(away))
            })
            .collect(),
    };
    taps.into_iter().filter_map(inside).collect()
}

/// The derivative of [`keys`].
fn keys_slope(distance: f64) -> f64 {
    let (a, d) = (-0.75, distance.abs());
    let slope = match d {
        0.0..=1.0 => 3.0 * (a + 2.0) * d.powi(2) - 2.0 * (a + 3.0) * d,
        1.0..2.0 => 3.0 * a * d.powi(2) - 10.0 * a * d + 8.0 * a,
        _ => 0.0,
    };
    slope * distance.signum()
}

/// An element of images by its leading index, and for each of these dimensions its weight and the derivative of the weight.
type Partly = (Vec<usize>, Vec<(f64, f64)>);

/// Interpolation of images at the coordinates of a grid.
struct Reading<'a> {
    mode: &'a str,
    padding: &'a str,
    align: bool,
}

impl<'a> Reading<'a> {
    /// Parses arguments `at` to `at + 2`, for a grid of coordinates in images of these spatial sizes.
    fn of(inputs: &'a Inputs, at: usize, grid: &Array, spatial: &[usize]) -> Result<Reading<'a>, Unknown> {
        let (mode, padding, align) = (inputs.str(at)?, inputs.str(at + 1)?, inputs.bool(at + 2)?);
        let rank = spatial.len();
        let known = matches!(mode, "bilinear" | "nearest") || mode == "bicubic" && rank == 2;
        if !known || !matches!(padding, "zeros" | "border" | "reflection") || !matches!(rank, 2 | 3) {
            return Err(Unknown("another mode or border than there are".into()));
        }
        let fits = grid.ndim() == rank + 2 && grid.sizes[rank + 1] == rank;
        if !fits || spatial.contains(&0) {
            return Err(Unknown("a grid that does not fit".into()));
        }
        Ok(Reading { mode, padding, align })
    }

    /// The elements that a pixel is interpolated from, in images of these spatial sizes: their indices, their weights, and the
    /// derivative of the weight by each coordinate, the last dimension's first.
    fn elements(
        &self,
        grid: &Array,
        (sample, position): (usize, &[usize]),
        spatial: &[usize],
    ) -> Vec<(Vec<usize>, f64, Vec<f64>)> {
        let rank = spatial.len();
        let along = |d: usize| {
            let at: Vec<usize> = [sample].iter().chain(position).copied().chain([rank - 1 - d]).collect();
            sampled(grid.at(&at).float(), self, spatial[d])
        };
        let first = vec![(Vec::new(), Vec::new())];
        let all = (0..rank).fold(first, |made: Vec<Partly>, d| {
            let taps = along(d);
            let with = |(index, parts): &Partly| -> Vec<_> {
                let add = |&(at, weight, slope): &Moving| {
                    let index = index.iter().copied().chain([at]).collect();
                    (index, parts.iter().copied().chain([(weight, slope)]).collect())
                };
                taps.iter().map(add).collect()
            };
            made.iter().flat_map(with).collect()
        });
        let element = |(index, parts): Partly| {
            let product = |moved: Option<usize>| -> f64 {
                parts.iter().enumerate().map(|(d, &(w, s))| if moved == Some(d) { s } else { w }).product()
            };
            let slopes = (0..rank).rev().map(|d| product(Some(d))).collect();
            (index, product(None), slopes)
        };
        all.into_iter().map(element).collect()
    }
}

fn grid_sample(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, grid) = (inputs.array(0)?, inputs.array(1)?);
    let (rank, spatial) = (a.ndim().saturating_sub(2), &a.sizes[2..]);
    let reading = Reading::of(inputs, 2, grid, spatial)?;
    if grid.sizes[0] != a.sizes[0] || a.dtype != grid.dtype {
        return Err(Unknown("a grid that does not fit".into()));
    }
    let sizes = with_spatial(&a.sizes, &grid.sizes[1..=rank]);
    Ok(vec![Array::from_fn(a.dtype, sizes, |index| {
        let terms: Vec<f64> = reading
            .elements(grid, (index[0], &index[2..]), spatial)
            .iter()
            .map(|(at, weight, _)| a.at(&with_spatial(index, at)).float() * weight)
            .collect();
        float_total(a.dtype, &terms)
    })])
}

/// Whether a grid has a coordinate for each pixel of a gradient.
fn fits(grad: &Array, grid: &Array) -> Result<(), Unknown> {
    let fits = grad.ndim() == grid.ndim()
        && grad.sizes[0] == grid.sizes[0]
        && grad.sizes[2..] == grid.sizes[1..grid.ndim() - 1]
        && grad.dtype == grid.dtype;
    if fits { Ok(()) } else { Err(Unknown("a grid that does not fit".into())) }
}

fn grid_sample_input_grad(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (grad, grid, spatial) = (inputs.array(0)?, inputs.array(1)?, inputs.ints(2)?);
    let spatial = spatial.iter().map(|&v| whole(v)).collect::<Result<Vec<_>, _>>()?;
    let reading = Reading::of(inputs, 3, grid, &spatial)?;
    fits(grad, grid)?;
    let sizes = with_spatial(&grad.sizes, &spatial);
    let mut terms: Vec<Vec<f64>> = vec![Vec::new(); sizes.iter().product()];
    for (index, value) in Indices::new(&grad.sizes).zip(&grad.values) {
        for (at, weight, _) in reading.elements(grid, (index[0], &index[2..]), &spatial) {
            terms[flat(&sizes, &with_spatial(&index, &at))].push(value.float() * weight);
        }
    }
    let values = terms.iter().map(|terms| float_total(grad.dtype, terms)).collect();
    Ok(vec![Array::new(grad.dtype, sizes, values)])
}

fn grid_sample_grid_grad(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (grad, a, grid) = (inputs.array(0)?, inputs.array(1)?, inputs.array(2)?);
    let spatial = &a.sizes[2..];
    let reading = Reading::of(inputs, 3, grid, spatial)?;
    fits(grad, grid)?;
    if a.sizes[..2] != grad.sizes[..2] || a.dtype != grad.dtype {
        return Err(Unknown("images that do not fit".into()));
    }
    Ok(vec![Array::from_fn(grid.dtype, grid.sizes.clone(), |index| {
        let (position, axis) = (&index[1..index.len() - 1], index[index.len() - 1]);
        if reading.mode == "nearest" {
            return Number::Float(0.0);
        }
        let elements = reading.elements(grid, (index[0], position), spatial);
        let terms = |channel: usize| -> Vec<f64> {
            let of = grad.at(&with_spatial(&[index[0], channel], position)).float();
            let term = |(at, _, slopes): &(Vec<usize>, f64, Vec<f64>)| {
                of * a.at(&with_spatial(&[index[0], channel], at)).float() * slopes[axis]
            };
            elements.iter().map(term).collect()
        };
        float_total(grid.dtype, &(0..a.sizes[1]).flat_map(terms).collect::<Vec<_>>())
    })])
}

/// The family's second part, and adaptive pooling.
pub const ALL: Family = &[
    ("adaptive_avg_pool", adaptive_avg_pool),
    ("adaptive_avg_pool_backward", adaptive_avg_pool_backward),
    ("adaptive_max_pool", adaptive_max_pool),
    ("grid_sample", grid_sample),
    ("grid_sample_grid_grad", grid_sample_grid_grad),
    ("grid_sample_input_grad", grid_sample_input_grad),
    ("interpolate", interpolate),
    ("interpolate_backward", interpolate_backward),
];
