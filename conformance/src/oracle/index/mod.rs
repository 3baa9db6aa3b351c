//! Ops that join, move and select elements by index.

mod arrange;
mod bags;
mod read;
mod reduced;
mod sorted;
mod write;

pub use arrange::ALL as ARRANGE;
pub use bags::ALL as BAGS;
pub use read::ALL as READ;
pub use reduced::ALL as REDUCED;
pub use sorted::ALL as SORTED;
pub use write::ALL as WRITE;

use super::Unknown;
use super::pointwise::broadcast;
use crate::array::{Array, Index, Indices, Number};

/// The array with a 0-d tensor treated as a row of one element.
fn with_dim(a: &Array) -> Array {
    if a.sizes.is_empty() { a.clone().reshaped([1]) } else { a.clone() }
}

/// An index in `0..size`.
fn checked(i: Number, size: usize) -> Result<usize, Unknown> {
    usize::try_from(i.int())
        .ok()
        .filter(|&i| i < size)
        .ok_or_else(|| Unknown(format!("index {i:?} of {size}")))
}

/// Normalises an index, negative ones counting from the end, to `0..size`.
fn checked_from_end(i: Number, size: usize) -> Result<usize, Unknown> {
    let back = if i.int() < 0 { size as i128 } else { 0 };
    checked(Number::Int(i.int() + back), size)
}

/// All indices of an index tensor.
fn checked_all(index: &Array, size: usize) -> Result<Vec<usize>, Unknown> {
    index.values.iter().map(|&i| checked(i, size)).collect()
}

/// The multi-index with index `i` in dimension `dim`.
fn with(index: &[usize], dim: usize, i: usize) -> Index {
    let mut changed = Index::from_slice(index);
    changed[dim] = i;
    changed
}

/// The elements selected by index tensors, one for each of the ascending dimensions `dims`: the shape, and for each of its
/// elements the multi-index into an array of `sizes`. The indices are broadcast together; their shape replaces the
/// dimensions, or is leading if these are not adjacent, as in NumPy.
fn pointed(sizes: &[usize], indices: &[Array], dims: &[i64]) -> Result<(Vec<usize>, Vec<Index>), Unknown> {
    let dims: Vec<usize> = dims.iter().map(|&d| d as usize).collect();
    if dims.len() != indices.len() || dims.iter().any(|&d| d >= sizes.len()) {
        return Err(Unknown(format!("{} indices for dimensions {dims:?}", indices.len())));
    }
    let own = broadcast(&indices.iter().map(|i| i.sizes.as_slice()).collect::<Vec<_>>())?;
    let neighbours = dims.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let at = if neighbours { dims.first().copied().unwrap_or(0) } else { 0 };
    let others: Vec<usize> = (0..sizes.len()).filter(|d| !dims.contains(d)).collect();
    let mut shape: Vec<usize> = others.iter().map(|&d| sizes[d]).collect();
    shape.splice(at..at, own.iter().copied());
    let mut found = Vec::new();
    for index in Indices::new(&shape) {
        let (mut source, mut rest) = (Index::from_elem(0, sizes.len()), index);
        let shared: Index = rest.drain(at..at + own.len()).collect();
        others.iter().zip(rest).for_each(|(&d, i)| source[d] = i);
        for (&d, tensor) in dims.iter().zip(indices) {
            source[d] = checked_from_end(tensor.broadcast_at(&shared), sizes[d])?;
        }
        found.push(source);
    }
    Ok((shape, found))
}
