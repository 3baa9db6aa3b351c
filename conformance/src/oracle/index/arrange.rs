//! Ops that join, repeat, pad, flip and roll dimensions.

use super::with;
use crate::array::{Array, Number};
use crate::oracle::args::wrap;
use crate::oracle::{Family, Inputs, Unknown};

fn no_dim(dim: i64) -> Unknown {
    Unknown(format!("no dimension {dim}"))
}

/// Concatenates the arrays along `dim`.
fn joined(list: &[Array], dim: usize) -> Result<Array, Unknown> {
    let Some(first) = list.first() else { return Err(Unknown("no tensor".into())) };
    let mut sizes = first.sizes.clone();
    let fits = |a: &Array| a.ndim() == sizes.len() && with(&a.sizes, dim, 0) == with(&sizes, dim, 0);
    if dim >= sizes.len() || !list.iter().all(fits) {
        return Err(Unknown("shapes that do not fit".into()));
    }
    // For each index along `dim` the source array, and the index in it.
    let sources: Vec<(usize, usize)> =
        list.iter().enumerate().flat_map(|(k, a)| (0..a.sizes[dim]).map(move |i| (k, i))).collect();
    sizes[dim] = sources.len();
    Ok(Array::from_fn(first.dtype, sizes, |index| {
        let (k, i) = sources[index[dim]];
        list[k].at(&with(index, dim, i))
    }))
}

/// The arrays of argument 0 as their promoted dtype.
fn promoted(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.promote(&[0])?;
    Ok(inputs.arrays(0)?.iter().map(|a| a.cast(dtype)).collect())
}

fn cat(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let list = promoted(inputs)?;
    let dim = inputs.dim(1, list.first().map_or(0, Array::ndim))?;
    Ok(vec![joined(&list, dim)?])
}

fn stack(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let mut list = promoted(inputs)?;
    let dim = inputs.dim(1, list.first().map_or(0, Array::ndim) + 1)?;
    if list.iter().any(|a| a.sizes != list[0].sizes) {
        return Err(Unknown("tensors of different shapes".into()));
    }
    list.iter_mut().for_each(|a| a.sizes.insert(dim, 1));
    Ok(vec![joined(&list, dim)?])
}

fn flip(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let mut flipped = vec![false; a.ndim()];
    for &dim in inputs.ints(1)? {
        let dim = wrap(dim, a.ndim()).ok_or_else(|| no_dim(dim))?;
        flipped.iter_mut().skip(dim).take(1).for_each(|t| *t = true);
    }
    Ok(vec![Array::from_fn(a.dtype, a.sizes.clone(), |index| {
        let source = |(d, &i): (usize, &usize)| if flipped[d] { a.sizes[d] - 1 - i } else { i };
        a.at(&index.iter().enumerate().map(source).collect::<Vec<_>>())
    })])
}

/// roll: shifts elements along each dimension, sequentially.
fn roll(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (shifts, dims) = (inputs.ints(1)?, inputs.ints(2)?);
    if shifts.len() != dims.len() {
        return Err(Unknown("not one shift for each dimension".into()));
    }
    let mut made = inputs.array(0)?.clone();
    for (&shift, &dim) in shifts.iter().zip(dims) {
        let dim = wrap(dim, made.ndim()).ok_or_else(|| no_dim(dim))?;
        let Some(&size) = made.sizes.get(dim) else { continue };
        let from = |i: usize| (i as i128 - i128::from(shift)).rem_euclid(size as i128) as usize;
        made = Array::from_fn(made.dtype, made.sizes.clone(), |index| {
            made.at(&with(index, dim, from(index[dim])))
        });
    }
    Ok(vec![made])
}

/// Repeats the array along each dimension; missing dimensions are leading ones of size 1.
fn repeated(a: &Array, repeats: &[i64]) -> Result<Vec<Array>, Unknown> {
    let lead = repeats.len().checked_sub(a.ndim()).ok_or_else(|| Unknown("too few repeats".into()))?;
    let own: Vec<usize> = std::iter::repeat_n(1, lead).chain(a.sizes.iter().copied()).collect();
    let mut sizes = Vec::new();
    for (&size, &times) in own.iter().zip(repeats) {
        sizes.push(size * usize::try_from(times).map_err(|_| Unknown("a negative number".into()))?);
    }
    let source = a.clone().reshaped(own);
    Ok(vec![Array::from_fn(a.dtype, sizes, |index| {
        source.at(&index.iter().zip(&source.sizes).map(|(i, n)| i % n).collect::<Vec<_>>())
    })])
}

fn repeat(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    repeated(inputs.array(0)?, inputs.ints(1)?)
}

/// As `repeat`, with missing leading repeats of 1.
fn tile(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, given) = (inputs.array(0)?, inputs.ints(1)?);
    let missing = a.ndim().saturating_sub(given.len());
    repeated(a, &std::iter::repeat_n(1, missing).chain(given.iter().copied()).collect::<Vec<_>>())
}

/// The source index of an element of a padded dimension, given its index `i` before padding: `None` for constant padding.
/// Elements cropped by a negative width are not part of circular padding.
fn source(mode: &str, i: i64, size: i64, [before, after]: [i64; 2]) -> Option<i64> {
    let (first, end) = ((-before).max(0), size - (-after).max(0));
    match mode {
        "reflect" if i < 0 => Some(-i),
        "reflect" if i >= size => Some(2 * (size - 1) - i),
        "replicate" => Some(i.clamp(0, size - 1)),
        "circular" => Some(first + (i - first).rem_euclid(end - first)),
        _ => (0..size).contains(&i).then_some(i),
    }
}

/// Pads by pairs of widths, the last dimension first.
fn padded(a: &Array, widths: &[i64], mode: &str, value: Number) -> Result<Vec<Array>, Unknown> {
    if !widths.len().is_multiple_of(2) || widths.len() > 2 * a.ndim() {
        return Err(Unknown(format!("widths {widths:?} for {:?}", a.sizes)));
    }
    let mut sizes = a.sizes.clone();
    let mut borders = vec![[0i64; 2]; a.ndim()];
    for (k, pair) in widths.chunks(2).enumerate() {
        let dim = a.ndim() - 1 - k;
        let size = a.sizes[dim] as i64;
        let most = match mode {
            "reflect" => size - 1,
            // Once around the remaining elements, and no further.
            "circular" => size + pair[0].min(0) + pair[1].min(0),
            "replicate" if size == 0 => 0,
            "replicate" | "constant" => i64::MAX,
            _ => return Err(Unknown(format!("mode `{mode}`"))),
        };
        if pair.iter().any(|&w| w > most && w != 0) {
            return Err(Unknown(format!("widths {pair:?} for a dimension of {size}")));
        }
        borders[dim] = [pair[0], pair[1]];
        sizes[dim] = usize::try_from(size + pair[0] + pair[1])
            .map_err(|_| Unknown("more cut off than there is".into()))?;
    }
    Ok(vec![Array::from_fn(a.dtype, sizes, |index| {
        let inner = index.iter().enumerate().map(|(d, &i)| {
            let before = i as i64 - borders[d][0];
            source(mode, before, a.sizes[d] as i64, borders[d]).map(|i| i as usize)
        });
        inner.collect::<Option<Vec<_>>>().map_or(value, |inner| a.at(&inner))
    })])
}

fn constant_pad(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    padded(a, inputs.ints(1)?, "constant", inputs.number(2)?.cast(a.dtype))
}

fn pad(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    padded(a, inputs.ints(1)?, inputs.str(2)?, inputs.number(3)?.cast(a.dtype))
}

/// The family's part.
pub const ALL: Family = &[
    ("cat", cat),
    ("constant_pad", constant_pad),
    ("flip", flip),
    ("pad", pad),
    ("repeat", repeat),
    ("roll", roll),
    ("stack", stack),
    ("tile", tile),
];

#[cfg(test)]
mod tests {
    use super::*;
    use keyway::DType;

    fn row(values: &[i128]) -> Array {
        Array::new(DType::I64, [values.len()], values.iter().map(|&v| Number::Int(v)).collect())
    }

    #[test]
    fn borders_by_hand() {
        let call = |widths: &[i64], mode| {
            padded(&row(&[1, 2, 3]), widths, mode, Number::Int(7)).map(|made| made[0].ints())
        };
        assert_eq!(call(&[2, 1], "constant").unwrap(), [7, 7, 1, 2, 3, 7]);
        assert_eq!(call(&[2, 1], "reflect").unwrap(), [3, 2, 1, 2, 3, 2]);
        assert_eq!(call(&[2, 1], "replicate").unwrap(), [1, 1, 1, 2, 3, 3]);
        assert_eq!(call(&[2, 1], "circular").unwrap(), [2, 3, 1, 2, 3, 1]);
        assert_eq!(call(&[-1, -1], "constant").unwrap(), [2]);
        assert_eq!(call(&[2, -1], "circular").unwrap(), [1, 2, 1, 2]);
        assert_eq!(call(&[-1, 1], "replicate").unwrap(), [2, 3, 3]);
        assert!(call(&[3, 0], "reflect").is_err());
    }

    #[test]
    fn joins_and_repeats_by_hand() {
        let pair = [row(&[1, 2]).reshaped([1, 2]), row(&[3, 4]).reshaped([1, 2])];
        assert_eq!(joined(&pair, 1).unwrap().sizes, [1, 4]);
        assert_eq!(joined(&pair, 0).unwrap().ints(), [1, 2, 3, 4]);
        let made = repeated(&row(&[1, 2]), &[2, 2]).unwrap();
        assert_eq!((made[0].sizes.as_slice(), made[0].ints()), ([2, 4].as_slice(), [1, 2].repeat(4)));
    }
}
