//! Pooling: direct loops over the window.

use super::number::float_total;
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Index, Indices, Number, flat};
use keyway::DType;

/// A window of one spatial dimension.
struct Window {
    size: i64,
    kernel: i64,
    stride: i64,
    padding: i64,
    dilation: i64,
    positions: usize,
}

/// The windows of images of these spatial sizes: kernel, stride and padding are arguments `at` to `at + 2`.
fn windows(
    inputs: &Inputs,
    at: usize,
    dilation: Option<usize>,
    ceil: bool,
    sizes: &[usize],
) -> Result<Vec<Window>, Unknown> {
    let lists = [inputs.ints(at)?, inputs.ints(at + 1)?, inputs.ints(at + 2)?];
    let ones = vec![1; sizes.len()];
    let dilation = dilation.map_or(Ok(&ones[..]), |i| inputs.ints(i))?;
    if sizes.is_empty() || lists.iter().chain([&dilation]).any(|list| list.len() != sizes.len()) {
        return Err(Unknown("lists that are not as long as there are spatial dimensions".into()));
    }
    (0..sizes.len())
        .map(|d| {
            let (size, [kernel, stride, padding], dilation) =
                (sizes[d] as i64, lists.map(|list| list[d]), dilation[d]);
            if stride < 1 || dilation < 1 || size < 1 {
                return Err(Unknown("a stride, a dilation or an image of 0".into()));
            }
            let free = size + 2 * padding - dilation * (kernel - 1) - 1;
            let mut positions = free.div_euclid(stride) + 1;
            // With ceil mode, the last window must not begin in the padding after the image.
            if ceil && free.rem_euclid(stride) != 0 && positions * stride < size + padding {
                positions += 1;
            }
            if positions < 1 {
                return Err(Unknown("a window that does not fit".into()));
            }
            Ok(Window { size, kernel, stride, padding, dilation, positions: positions as usize })
        })
        .collect()
}

impl Window {
    /// The elements that the window reads at an output position.
    fn reads(&self, position: usize) -> Vec<usize> {
        let first = position as i64 * self.stride - self.padding;
        (0..self.kernel)
            .map(|t| first + t * self.dilation)
            .filter(|at| (0..self.size).contains(at))
            .map(|at| at as usize)
            .collect()
    }

    /// The number of elements of the window within the padded image at an output position.
    fn with_border(&self, position: usize) -> usize {
        let first = position as i64 * self.stride - self.padding;
        ((first + self.kernel).min(self.size + self.padding) - first).max(0) as usize
    }
}

/// The Cartesian product of the lists.
fn combinations(lists: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let sizes: Vec<usize> = lists.iter().map(Vec::len).collect();
    let pick = |index: Index| index.iter().zip(lists).map(|(&i, list)| list[i]).collect();
    Indices::new(&sizes).map(pick).collect()
}

/// The indices in the channel that the window reads at an output position.
fn under(windows: &[Window], sizes: &[usize], position: &[usize]) -> Vec<usize> {
    let lists: Vec<Vec<usize>> = windows.iter().zip(position).map(|(window, &p)| window.reads(p)).collect();
    combinations(&lists).iter().map(|index| flat(sizes, index)).collect()
}

fn with_spatial(sizes: &[usize], spatial: impl IntoIterator<Item = usize>) -> Vec<usize> {
    sizes[..2].iter().copied().chain(spatial).collect()
}

fn image(inputs: &Inputs) -> Result<&Array, Unknown> {
    let a = inputs.array(0)?;
    if a.ndim() > 2 { Ok(a) } else { Err(Unknown("no images".into())) }
}

/// Whether an element replaces the largest so far; NaN always does.
pub(super) fn exceeds(x: Number, largest: Number) -> bool {
    match (x, largest) {
        (Number::Int(x), Number::Int(largest)) => x > largest,
        _ => x.float() > largest.float() || x.float().is_nan(),
    }
}

fn max_pool(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = image(inputs)?;
    let spatial = &a.sizes[2..];
    let windows = windows(inputs, 1, Some(4), inputs.bool(5)?, spatial)?;
    let sizes = with_spatial(&a.sizes, windows.iter().map(|w| w.positions));
    let plane: usize = spatial.iter().product();
    let (mut values, mut positions) = (Vec::new(), Vec::new());
    for index in Indices::new(&sizes) {
        let first = (index[0] * a.sizes[1] + index[1]) * plane;
        let mut best = None;
        for position in under(&windows, spatial, &index[2..]) {
            let x = a.values[first + position];
            if best.is_none_or(|(largest, _)| exceeds(x, largest)) {
                best = Some((x, position));
            }
        }
        let Some((largest, at)) = best else { return Err(Unknown("a window without elements".into())) };
        values.push(largest);
        positions.push(Number::Int(at as i128));
    }
    Ok(vec![Array::new(a.dtype, sizes.clone(), values), Array::new(DType::I64, sizes, positions)])
}

fn max_pool_values(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    Ok(max_pool(inputs)?.into_iter().take(1).collect())
}

/// The sizes in a list argument.
fn listed(inputs: &Inputs, i: usize) -> Result<Vec<usize>, Unknown> {
    let sizes = inputs.ints(i)?.iter().map(|&n| usize::try_from(n));
    sizes.collect::<Result<_, _>>().map_err(|_| Unknown("a negative size".into()))
}

/// The sums of the addends that `each` returns, with their channel and index in it.
fn spread(
    grad: &Array,
    spatial: &[usize],
    each: impl Fn(&[usize], f64) -> Result<Vec<(usize, f64)>, Unknown>,
) -> Result<Vec<Array>, Unknown> {
    let sizes = with_spatial(&grad.sizes, spatial.iter().copied());
    let plane: usize = spatial.iter().product();
    let mut terms: Vec<Vec<f64>> = vec![Vec::new(); sizes.iter().product()];
    for (index, value) in Indices::new(&grad.sizes).zip(&grad.values) {
        for (position, term) in each(&index, value.float())? {
            terms[(index[0] * sizes[1] + index[1]) * plane + position].push(term);
        }
    }
    let values = terms.iter().map(|terms| float_total(grad.dtype, terms)).collect();
    Ok(vec![Array::new(grad.dtype, sizes, values)])
}

fn max_pool_backward(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (grad, indices, spatial) = (image(inputs)?, inputs.array(1)?, listed(inputs, 2)?);
    let plane: usize = spatial.iter().product();
    if indices.sizes != grad.sizes || spatial.len() + 2 != grad.ndim() {
        return Err(Unknown("indices of another shape".into()));
    }
    spread(grad, &spatial, |index, value| {
        match usize::try_from(indices.at(index).int()).ok().filter(|&position| position < plane) {
            Some(position) => Ok(vec![(position, value)]),
            None => Err(Unknown("an index outside".into())),
        }
    })
}

fn max_unpool(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, indices, spatial) = (image(inputs)?, inputs.array(1)?, listed(inputs, 2)?);
    let sizes = with_spatial(&a.sizes, spatial.iter().copied());
    let plane: usize = spatial.iter().product();
    if indices.sizes != a.sizes || sizes.len() != a.ndim() {
        return Err(Unknown("indices of another shape".into()));
    }
    let mut values = vec![Number::Float(0.0); sizes.iter().product()];
    for (index, value) in Indices::new(&a.sizes).zip(&a.values) {
        let position = usize::try_from(indices.at(&index).int()).ok().filter(|&position| position < plane);
        let position = position.ok_or_else(|| Unknown("an index outside".into()))?;
        values[(index[0] * sizes[1] + index[1]) * plane + position] = *value;
    }
    Ok(vec![Array::new(a.dtype, sizes, values)])
}

/// The divisor of the sum at an output position, given the number of elements in the image: arguments `at` (whether padding
/// counts) and the next.
fn divisor(
    inputs: &Inputs,
    at: usize,
    windows: &[Window],
    position: &[usize],
    inside: usize,
) -> Result<f64, Unknown> {
    let all = || windows.iter().zip(position).map(|(window, &p)| window.with_border(p)).product();
    let count = match inputs.optional_int(at + 1)? {
        Some(given) => return Ok(given as f64),
        None if inputs.bool(at)? => all(),
        None => inside,
    };
    Ok(count as f64)
}

fn avg_pool(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = image(inputs)?;
    let spatial = &a.sizes[2..];
    let windows = windows(inputs, 1, None, inputs.bool(4)?, spatial)?;
    let sizes = with_spatial(&a.sizes, windows.iter().map(|w| w.positions));
    let plane: usize = spatial.iter().product();
    let mut values = Vec::new();
    for index in Indices::new(&sizes) {
        let first = (index[0] * a.sizes[1] + index[1]) * plane;
        let positions = under(&windows, spatial, &index[2..]);
        let terms: Vec<f64> = positions.iter().map(|position| a.values[first + position].float()).collect();
        let by = divisor(inputs, 5, &windows, &index[2..], terms.len())?;
        values.push(match float_total(a.dtype, &terms) {
            Number::Float(sum) => Number::Float(sum / by),
            other => other,
        });
    }
    Ok(vec![Array::new(a.dtype, sizes, values)])
}

fn avg_pool_backward(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (grad, spatial) = (image(inputs)?, listed(inputs, 1)?);
    let windows = windows(inputs, 2, None, inputs.bool(5)?, &spatial)?;
    if windows.iter().map(|w| w.positions).ne(grad.sizes[2..].iter().copied()) {
        return Err(Unknown("another number of output positions than the gradient has".into()));
    }
    spread(grad, &spatial, |index, value| {
        let positions = under(&windows, &spatial, &index[2..]);
        let by = divisor(inputs, 6, &windows, &index[2..], positions.len())?;
        Ok(positions.into_iter().map(|position| (position, value / by)).collect())
    })
}

/// LP pooling: the root of the sum of powers; a window that extends beyond the end counts as full, with its mean.
fn lp_pool(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, p) = (image(inputs)?, inputs.float(1)?);
    let spatial = &a.sizes[2..];
    let windows = windows(inputs, 2, None, inputs.bool(5)?, spatial)?;
    if p == 0.0 || windows.iter().any(|w| w.padding != 0) {
        return Err(Unknown("an exponent of 0 or a border".into()));
    }
    let sizes = with_spatial(&a.sizes, windows.iter().map(|w| w.positions));
    let plane: usize = spatial.iter().product();
    let full: i64 = windows.iter().map(|w| w.kernel).product();
    Ok(vec![Array::from_fn(a.dtype, sizes, |index| {
        let first = (index[0] * a.sizes[1] + index[1]) * plane;
        let positions = under(&windows, spatial, &index[2..]);
        let terms: Vec<f64> =
            positions.iter().map(|position| a.values[first + position].float().powf(p)).collect();
        match float_total(a.dtype, &terms) {
            Number::Float(sum) => Number::Float((sum / terms.len() as f64 * full as f64).powf(1.0 / p)),
            other => other,
        }
    })])
}

/// The ops of this family.
pub const ALL: Family = &[
    ("avg_pool", avg_pool),
    ("avg_pool_backward", avg_pool_backward),
    ("lp_pool", lp_pool),
    ("max_pool", max_pool),
    ("max_pool_values", max_pool_values),
    ("max_pool_backward", max_pool_backward),
    ("max_unpool", max_unpool),
];
