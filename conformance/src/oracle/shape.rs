//! Views: the same elements in other shapes.

use super::args::wrap;
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Index, Number};

/// An array of `sizes` whose element at each index is that of `a` at `source(index)`.
fn moved(a: &Array, sizes: Vec<usize>, source: impl Fn(&[usize]) -> Index) -> Vec<Array> {
    vec![Array::from_fn(a.dtype, sizes, |index| a.at(&source(index)))]
}

fn count(n: i64) -> Result<usize, Unknown> {
    usize::try_from(n).map_err(|_| Unknown(format!("{n} is no count of elements")))
}

/// The element `start + Σ index * stride` of memory, for each index.
fn as_strided(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    // The array is dense and row-major, so its elements are the memory.
    let a = inputs.array(0)?;
    let sizes = inputs.ints(1)?.iter().map(|&n| count(n)).collect::<Result<Vec<_>, _>>()?;
    let strides = inputs.ints(2)?.iter().map(|&n| count(n)).collect::<Result<Vec<_>, _>>()?;
    let start = count(inputs.optional_int(3)?.unwrap_or(0))?;
    let reach: usize = sizes.iter().zip(&strides).map(|(&n, &s)| n.saturating_sub(1) * s).sum();
    if sizes.len() != strides.len() || (!sizes.contains(&0) && start + reach >= a.numel()) {
        return Err(Unknown("elements outside of the memory".into()));
    }
    Ok(vec![Array::from_fn(a.dtype, sizes, |index| {
        a.values[start + index.iter().zip(&strides).map(|(&i, &s)| i * s).sum::<usize>()]
    })])
}

fn diagonal(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, shift) = (inputs.array(0)?, inputs.int(1)?);
    let (first, second) = (inputs.dim(2, a.ndim())?, inputs.dim(3, a.ndim())?);
    if first == second {
        return Err(Unknown("one dimension has no diagonal".into()));
    }
    // Above the main diagonal the columns are ahead, below it the rows.
    let (down, across) = (count((-shift).max(0))?, count(shift.max(0))?);
    let length = a.sizes[first].saturating_sub(down).min(a.sizes[second].saturating_sub(across));
    let others: Vec<usize> = (0..a.ndim()).filter(|&d| d != first && d != second).collect();
    let sizes = others.iter().map(|&d| a.sizes[d]).chain([length]).collect();
    Ok(moved(a, sizes, |index| {
        let along = index[others.len()];
        let mut source = Index::from_elem(0, a.ndim());
        others.iter().zip(index).for_each(|(&d, &i)| source[d] = i);
        source[first] = along + down;
        source[second] = along + across;
        source
    }))
}

fn expand(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, given) = (inputs.array(0)?, inputs.ints(1)?);
    let lead = given.len().checked_sub(a.ndim()).ok_or_else(|| Unknown("too few sizes".into()))?;
    let own = |d: usize| if d < lead { 1 } else { a.sizes[d - lead] };
    let mut sizes = Vec::new();
    for (d, &size) in given.iter().enumerate() {
        let size = if size == -1 && d >= lead { own(d) } else { count(size)? };
        if own(d) != 1 && own(d) != size {
            return Err(Unknown(format!("{:?} does not expand to {given:?}", a.sizes)));
        }
        sizes.push(size);
    }
    Ok(vec![Array::from_fn(a.dtype, sizes, |index| a.broadcast_at(index))])
}

/// The array with its dimensions in another order: dimension `d` of the result is `order[d]`.
fn ordered(a: &Array, order: &[usize]) -> Vec<Array> {
    moved(a, order.iter().map(|&d| a.sizes[d]).collect(), |index| {
        let mut source = Index::from_elem(0, a.ndim());
        order.iter().zip(index).for_each(|(&d, &i)| source[d] = i);
        source
    })
}

fn permute(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let order: Vec<usize> = inputs.ints(1)?.iter().filter_map(|&d| wrap(d, a.ndim())).collect();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..a.ndim()) {
        return Err(Unknown(format!("{order:?} is no order of {} dimensions", a.ndim())));
    }
    Ok(ordered(a, &order))
}

fn transpose(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let (first, second) = (inputs.dim(1, a.ndim())?, inputs.dim(2, a.ndim())?);
    let mut order: Vec<usize> = (0..a.ndim()).collect();
    if a.ndim() > 0 {
        order.swap(first, second);
    }
    Ok(ordered(a, &order))
}

/// The sizes in argument 1, with -1 replaced by the remaining size.
fn reshape(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, given) = (inputs.array(0)?, inputs.ints(1)?);
    let known: i64 = given.iter().filter(|&&n| n != -1).product();
    let left = if known > 0 { a.numel() as i64 / known } else { 0 };
    let sizes =
        given.iter().map(|&n| count(if n == -1 { left } else { n })).collect::<Result<Vec<_>, _>>()?;
    if sizes.iter().product::<usize>() != a.numel() || given.iter().filter(|&&n| n == -1).count() > 1 {
        return Err(Unknown(format!("{} elements in {given:?}", a.numel())));
    }
    Ok(vec![a.clone().reshaped(sizes)])
}

/// The array at one index of a dimension, which is dropped.
fn at(a: &Array, dim: usize, i: usize) -> Array {
    let mut sizes = a.sizes.clone();
    sizes.remove(dim);
    Array::from_fn(a.dtype, sizes, |index| {
        let mut source = index.to_vec();
        source.insert(dim, i);
        a.at(&source)
    })
}

/// Refuses a tensor without dimensions.
fn dimensioned(inputs: &Inputs) -> Result<&Array, Unknown> {
    let a = inputs.array(0)?;
    if a.ndim() > 0 { Ok(a) } else { Err(Unknown("a tensor of no dimensions".into())) }
}

fn select(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = dimensioned(inputs)?;
    let (dim, i) = (inputs.dim(1, a.ndim())?, inputs.int(2)?);
    let size = a.sizes[dim] as i64;
    if !(-size..size).contains(&i) {
        return Err(Unknown(format!("index {i} of {size}")));
    }
    Ok(vec![at(a, dim, i.rem_euclid(size) as usize)])
}

fn unbind(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = dimensioned(inputs)?;
    let dim = inputs.dim(1, a.ndim())?;
    Ok((0..a.sizes[dim]).map(|i| at(a, dim, i)).collect())
}

/// `length` indices of a dimension, every `step`-th from `start` on.
fn stretch(a: &Array, dim: usize, start: usize, length: usize, step: usize) -> Array {
    let mut sizes = a.sizes.clone();
    sizes[dim] = length;
    Array::from_fn(a.dtype, sizes, |index| {
        let mut source = index.to_vec();
        source[dim] = start + index[dim] * step;
        a.at(&source)
    })
}

/// Python's `a[start:end:step]`, for a step of 1 or more.
fn slice(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = dimensioned(inputs)?;
    let dim = inputs.dim(1, a.ndim())?;
    let step = count(inputs.int(4)? - 1)? + 1;
    let size = a.sizes[dim] as i64;
    let position = |p: i64| if p < 0 { p.saturating_add(size).max(0) } else { p.min(size) };
    let start = position(inputs.optional_int(2)?.unwrap_or(0));
    let end = position(inputs.optional_int(3)?.unwrap_or(size));
    Ok(vec![stretch(a, dim, start as usize, ((end - start).max(0) as usize).div_ceil(step), step)])
}

fn split(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = dimensioned(inputs)?;
    let dim = inputs.dim(2, a.ndim())?;
    let sizes = inputs.ints(1)?.iter().map(|&n| count(n)).collect::<Result<Vec<_>, _>>()?;
    if sizes.iter().sum::<usize>() != a.sizes[dim] {
        return Err(Unknown(format!("parts {sizes:?} of {}", a.sizes[dim])));
    }
    let starts = sizes.iter().scan(0, |next, &n| {
        *next += n;
        Some(*next - n)
    });
    Ok(starts.zip(&sizes).map(|(start, &n)| stretch(a, dim, start, n, 1)).collect())
}

fn squeeze(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let dims = inputs.optional_ints(1)?;
    let chosen = |d: usize| dims.is_none_or(|dims| dims.iter().any(|&c| wrap(c, a.ndim()) == Some(d)));
    let stays = |&d: &usize| a.sizes[d] != 1 || !chosen(d);
    Ok(vec![a.clone().reshaped((0..a.ndim()).filter(stays).map(|d| a.sizes[d]).collect::<Vec<_>>())])
}

fn unsqueeze(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let mut sizes = a.sizes.clone();
    sizes.insert(inputs.dim(1, a.ndim() + 1)?, 1);
    Ok(vec![a.clone().reshaped(sizes)])
}

/// Windows of `size` along a dimension, one every `step`, as a new last dimension. A 0-d tensor is treated as one row of
/// one element, and has one window.
fn unfold(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let dim = inputs.dim(1, a.ndim())?;
    let (size, step) = (count(inputs.int(2)?)?, count(inputs.int(3)? - 1)? + 1);
    if a.ndim() == 0 {
        return match size {
            0 | 1 => Ok(vec![Array::new(a.dtype, [size], a.values[..size].to_vec())]),
            _ => Err(Unknown(format!("a window of {size} on 1"))),
        };
    }
    if size > a.sizes[dim] {
        return Err(Unknown(format!("a window of {size} on {}", a.sizes[dim])));
    }
    let mut sizes = a.sizes.clone();
    sizes[dim] = (a.sizes[dim] - size) / step + 1;
    sizes.push(size);
    Ok(vec![Array::from_fn(a.dtype, sizes, |index| -> Number {
        let mut source = index[..a.ndim()].to_vec();
        source[dim] = index[dim] * step + index[a.ndim()];
        a.at(&source)
    })])
}

/// The ops of this family.
pub const ALL: Family = &[
    ("as_strided", as_strided),
    ("diagonal", diagonal),
    ("expand", expand),
    ("permute", permute),
    ("reshape", reshape),
    ("select", select),
    ("slice", slice),
    ("split", split),
    ("squeeze", squeeze),
    ("transpose", transpose),
    ("unbind", unbind),
    ("unfold", unfold),
    ("unsqueeze", unsqueeze),
    ("view", reshape),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{Oracle, Value};
    use keyway::DType;

    fn made(op: Oracle, sizes: &[usize], rest: &[Value]) -> (Vec<usize>, Vec<i128>) {
        let n: usize = sizes.iter().product();
        let a = Array::new(DType::I64, sizes, (0..n as i128).map(Number::Int).collect());
        let args = [Value::Array(a)].into_iter().chain(rest.iter().cloned()).collect();
        let out = op(&Inputs(args)).unwrap().remove(0);
        (out.sizes.clone(), out.ints())
    }

    #[test]
    fn views_by_hand() {
        use Value::{Int, Ints, None};
        let ints = |v: &[i64]| Ints(v.to_vec());
        assert_eq!(made(transpose, &[2, 3], &[Int(0), Int(1)]), (vec![3, 2], vec![0, 3, 1, 4, 2, 5]));
        assert_eq!(made(permute, &[1, 2, 2], &[ints(&[2, 0, 1])]), (vec![2, 1, 2], vec![0, 2, 1, 3]));
        assert_eq!(made(diagonal, &[2, 3], &[Int(1), Int(0), Int(1)]), (vec![2], vec![1, 5]));
        assert_eq!(made(diagonal, &[2, 3], &[Int(-1), Int(0), Int(1)]), (vec![1], vec![3]));
        assert_eq!(made(slice, &[5], &[Int(0), Int(-4), None, Int(2)]), (vec![2], vec![1, 3]));
        assert_eq!(made(unfold, &[5], &[Int(0), Int(2), Int(2)]), (vec![2, 2], vec![0, 1, 2, 3]));
        assert_eq!(made(expand, &[2, 1], &[ints(&[-1, 2])]), (vec![2, 2], vec![0, 0, 1, 1]));
        assert_eq!(made(reshape, &[2, 3], &[ints(&[3, -1])]).0, [3, 2]);
        assert_eq!(
            made(as_strided, &[4], &[ints(&[2, 2]), ints(&[1, 1]), Int(1)]),
            (vec![2, 2], vec![1, 2, 2, 3])
        );
        assert_eq!(made(squeeze, &[1, 2, 1], &[ints(&[-1])]).0, [1, 2]);
    }
}
