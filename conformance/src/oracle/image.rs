//! Ops that rearrange images, computed element by element.

use super::number::float_total;
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Index, Indices, Number, flat};

pub(super) fn whole(v: i64) -> Result<usize, Unknown> {
    usize::try_from(v).ok().filter(|&v| v > 0).ok_or_else(|| Unknown("no positive number".into()))
}

/// An image's last three sizes and the leading ones.
fn channels_first(a: &Array) -> Result<(&[usize], [usize; 3]), Unknown> {
    match a.sizes.split_last_chunk::<3>() {
        Some((lead, last)) => Ok((lead, *last)),
        None => Err(Unknown("no image".into())),
    }
}

fn with_last(index: &[usize], last: [usize; 3]) -> Index {
    index[..index.len() - 3].iter().copied().chain(last).collect()
}

fn pixel_shuffle(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, f) = (inputs.array(0)?, whole(inputs.int(1)?)?);
    let (lead, [c, h, w]) = channels_first(a)?;
    if f.checked_mul(f).is_none_or(|square| c % square != 0) {
        return Err(Unknown("a factor that does not divide".into()));
    }
    let sizes: Vec<usize> = lead.iter().copied().chain([c / (f * f), h * f, w * f]).collect();
    Ok(vec![Array::from_fn(a.dtype, sizes, |index| {
        let &[.., c, h, w] = index else { return Number::Any };
        a.at(&with_last(index, [(c * f + h % f) * f + w % f, h / f, w / f]))
    })])
}

fn pixel_unshuffle(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, f) = (inputs.array(0)?, whole(inputs.int(1)?)?);
    let (lead, [c, h, w]) = channels_first(a)?;
    if h % f != 0 || w % f != 0 {
        return Err(Unknown("a factor that does not divide".into()));
    }
    let sizes: Vec<usize> = lead.iter().copied().chain([c * f * f, h / f, w / f]).collect();
    Ok(vec![Array::from_fn(a.dtype, sizes, |index| {
        let &[.., c, h, w] = index else { return Number::Any };
        a.at(&with_last(index, [c / (f * f), h * f + c / f % f, w * f + c % f]))
    })])
}

fn channel_shuffle(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, groups) = (inputs.array(0)?, whole(inputs.int(1)?)?);
    if a.ndim() < 3 || a.sizes[1] % groups != 0 {
        return Err(Unknown("groups that do not divide".into()));
    }
    let each = a.sizes[1] / groups;
    Ok(vec![Array::from_fn(a.dtype, a.sizes.clone(), |index| {
        let mut from = index.to_vec();
        from[1] = index[1] % groups * each + index[1] / groups;
        a.at(&from)
    })])
}

/// The coordinate of the centre of pixel `i` of `count` in -1..1.
fn centre(i: usize, count: usize, align_corners: bool) -> f64 {
    match (count, align_corners) {
        (1, _) => 0.0,
        (_, true) => 2.0 * i as f64 / (count - 1) as f64 - 1.0,
        (_, false) => (2 * i + 1) as f64 / count as f64 - 1.0,
    }
}

fn affine_grid(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (theta, size, align) = (inputs.array(0)?, inputs.ints(1)?, inputs.bool(2)?);
    let &[batch, rows @ 2..=3, columns] = theta.sizes.as_slice() else {
        return Err(Unknown("no affine maps".into()));
    };
    let size = size.iter().map(|&s| usize::try_from(s)).collect::<Result<Vec<_>, _>>();
    let size = size.map_err(|_| Unknown("a negative size".into()))?;
    if columns != rows + 1 || size.len() != rows + 2 || size[0] != batch || size[1..].contains(&0) {
        return Err(Unknown("maps that do not fit the sizes".into()));
    }
    let spatial = &size[2..];
    let sizes: Vec<usize> = [batch].into_iter().chain(spatial.iter().copied()).chain([rows]).collect();
    Ok(vec![Array::from_fn(theta.dtype, sizes, |index| {
        let (n, row) = (index[0], index[rows + 1]);
        let mut sum = theta.at(&[n, row, rows]).float();
        for i in 0..rows {
            let d = rows - 1 - i;
            sum += theta.at(&[n, row, i]).float() * centre(index[d + 1], spatial[d], align);
        }
        Number::Float(sum)
    })])
}

/// A window that moves over images of this height and width: kernel, dilation, padding and stride from argument `at` on. Returns
/// the pixel read by each element of the window at each position.
fn windows(inputs: &Inputs, at: usize, sizes: [usize; 2]) -> Result<Vec<Vec<Option<[usize; 2]>>>, Unknown> {
    let list = |i: usize| match inputs.ints(i)? {
        &[a, b] => Ok([a, b]),
        _ => Err(Unknown("no two numbers".into())),
    };
    let ([kernel, dilation], [padding, stride]) =
        ([list(at)?, list(at + 1)?], [list(at + 2)?, list(at + 3)?]);
    let mut along: [Vec<Vec<Option<usize>>>; 2] = Default::default();
    for d in 0..2 {
        let free = sizes[d] as i64 + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
        if kernel[d] < 1 || dilation[d] < 1 || padding[d] < 0 || stride[d] < 1 || free < 0 {
            return Err(Unknown("a window that does not fit".into()));
        }
        let read = |position: i64, k: i64| {
            let at = position * stride[d] - padding[d] + k * dilation[d];
            usize::try_from(at).ok().filter(|&at| at < sizes[d])
        };
        along[d] = (0..=free / stride[d]).map(|p| (0..kernel[d]).map(|k| read(p, k)).collect()).collect();
    }
    let [rows, columns] = &along;
    let window = |row: &Vec<Option<usize>>, column: &Vec<Option<usize>>| {
        let both = row.iter().flat_map(|&y| column.iter().map(move |&x| Some([y?, x?])));
        both.collect()
    };
    Ok(rows.iter().flat_map(|row| columns.iter().map(move |column| window(row, column))).collect())
}

fn im2col(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let &[batch, channels, height, width] = a.sizes.as_slice() else {
        return Err(Unknown("no images".into()));
    };
    let positions = windows(inputs, 1, [height, width])?;
    let window = positions.first().map_or(0, Vec::len);
    Ok(vec![Array::from_fn(a.dtype, [batch, channels * window, positions.len()], |index| {
        match positions[index[2]][index[1] % window] {
            Some([y, x]) => a.at(&[index[0], index[1] / window, y, x]),
            None => Number::Float(0.0),
        }
    })])
}

fn col2im(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let (&[batch, rows, count], &[height, width]) = (a.sizes.as_slice(), inputs.ints(1)?) else {
        return Err(Unknown("no columns".into()));
    };
    let (height, width) = (whole(height)?, whole(width)?);
    let positions = windows(inputs, 2, [height, width])?;
    let window = positions.first().map_or(1, Vec::len);
    if rows % window != 0 || count != positions.len() {
        return Err(Unknown("another number of columns than window positions".into()));
    }
    let sizes = [batch, rows / window, height, width];
    let mut terms: Vec<Vec<f64>> = vec![Vec::new(); sizes.iter().product()];
    for (index, value) in Indices::new(&a.sizes).zip(&a.values) {
        if let Some([y, x]) = positions[index[2]][index[1] % window] {
            terms[flat(&sizes, &[index[0], index[1] / window, y, x])].push(value.float());
        }
    }
    let values = terms.iter().map(|terms| float_total(a.dtype, terms)).collect();
    Ok(vec![Array::new(a.dtype, sizes, values)])
}

/// The family's first part.
pub const ALL: Family = &[
    ("affine_grid", affine_grid),
    ("channel_shuffle", channel_shuffle),
    ("col2im", col2im),
    ("im2col", im2col),
    ("pixel_shuffle", pixel_shuffle),
    ("pixel_unshuffle", pixel_unshuffle),
];
