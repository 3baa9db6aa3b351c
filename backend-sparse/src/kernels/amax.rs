//! `amax` and `amin`: unstored elements count as 0. Scratch: that of coalescing, and one element for each element of the
//! result.

use super::sum::{Reduced, of_values, reduced_dims, reduced_sizes};
use crate::coalesce::{coalesced, first_indices, groups};
use crate::coo::{Coo, PIECE, Part, one, product, row_major};
use crate::number::{Number, by_dtype};
use keyway_cpu_loops::ViewExt;
use keyway_sdk::author::{Arg, Call, Error, OwnedTensor, new_host_tensor, parallel_chunks_mut};

fn amax(call: &Call<'_>) -> Result<(), Error> {
    of_call(call, true)
}

fn amin(call: &Call<'_>) -> Result<(), Error> {
    of_call(call, false)
}

fn of_call(call: &Call<'_>, largest: bool) -> Result<(), Error> {
    let coo = coalesced(Coo::argument(call, 0)?)?;
    let (mask, keep) = reduced_dims(call, 1, coo.sizes.len())?;
    extreme(coo, &mask, keep, largest)?.give(call)
}

/// The largest or smallest elements of a coalesced tensor over the dimensions of the mask.
///
/// # Errors
/// Mismatched components; errors of the host.
pub fn extreme<'a>(mut coo: Coo<'a>, mask: &[bool], keep: bool, largest: bool) -> Result<Reduced<'a>, Error> {
    let op = if largest { "amax" } else { "amin" };
    let sizes = reduced_sizes(&coo.sizes, mask, keep);
    let over = of_values(&coo, mask);
    if !over.is_empty() {
        // Reduces within each entry first, over its dense dimensions.
        let values = one(op, &[coo.values.arg(), Arg::Ints(&over), Arg::Bool(keep)])?;
        let dense = reduced_sizes(coo.dense_sizes(), &mask[coo.sparse_dim..], keep);
        coo.sizes.truncate(coo.sparse_dim);
        coo.sizes.extend(dense);
        coo.values = Part::Made(values);
    }
    let sparse = mask[..coo.sparse_dim].to_vec();
    if !sparse.contains(&true) && coo.sparse_dim > 0 {
        return Ok(Reduced::Sparse(coo));
    }
    by_dtype!(coo.dtype(), over_sparse(coo, &sparse, sizes, keep, largest))
}

/// Reduces over the sparse dimensions of the mask.
fn over_sparse<'a, T: Number>(
    coo: Coo<'a>,
    sparse: &[bool],
    sizes: Vec<i64>,
    keep: bool,
    largest: bool,
) -> Result<Reduced<'a>, Error> {
    let kept: Vec<usize> = (0..coo.sparse_dim).filter(|&dim| !sparse[dim]).collect();
    let of_kept = row_major(&kept.iter().map(|&dim| coo.sizes[dim]).collect::<Vec<_>>());
    let mut strides = vec![0; coo.sparse_dim];
    kept.iter().zip(of_kept).for_each(|(&dim, stride)| strides[dim] = stride);
    let reduced: Vec<i64> =
        (0..coo.sparse_dim).filter(|&dim| sparse[dim]).map(|dim| coo.sizes[dim]).collect();
    let places = product(&reduced);
    let groups = groups(&coo.keys_by(&strides)?)?;
    let width = coo.width();
    let values = coo.values.tensor().view::<T>()?.contiguous()?;
    let better = |a: T::Acc, b: T::Acc| {
        let replaces = if largest { b > a } else { b < a };
        if replaces || T::is_nan(b) { b } else { a }
    };
    let to_strided = kept.is_empty();
    let count = if to_strided { 1 } else { groups.len() };
    let mut shape = vec![count as i64];
    shape.extend_from_slice(coo.dense_sizes());
    let mut made: OwnedTensor = new_host_tensor::<T>(&shape)?;
    if let (Some(out), true) = (made.view_mut::<T>()?.as_mut_slice(), width > 0) {
        let per_piece = (PIECE / width).max(1);
        parallel_chunks_mut(out, per_piece * width, |piece, out| {
            for (n, out) in out.chunks_mut(width).enumerate() {
                let group = if groups.len() == 0 { &[][..] } else { groups.of(piece * per_piece + n) };
                let implicit = (group.len() < places).then_some(T::ZERO);
                for (column, out) in out.iter_mut().enumerate() {
                    let stored = group.iter().map(|&entry| values[entry as usize * width + column].widen());
                    let found = implicit
                        .into_iter()
                        .chain(stored)
                        .reduce(|a, b| if T::is_nan(a) { a } else { better(a, b) });
                    *out = T::narrow(found.unwrap_or(T::ZERO));
                }
            }
        })?;
    }
    if to_strided {
        return Ok(Reduced::Strided(one("reshape", &[Arg::Owned(&made), Arg::Ints(&sizes)])?));
    }
    let indices = Part::Made(first_indices(&coo, &kept, &groups)?);
    drop(values);
    let sparse_dim = kept.len();
    let dense = coo.dense_sizes();
    let small: Vec<i64> = kept.iter().map(|&dim| coo.sizes[dim]).chain(dense.iter().copied()).collect();
    let small =
        Coo { sizes: small, sparse_dim, nnz: count, coalesced: true, indices, values: Part::Made(made) };
    if !keep {
        return Ok(Reduced::Sparse(small));
    }
    // Reinserts the dimensions of size 1: rows of zeros, which preserve the order.
    let mut rows = Vec::new();
    {
        let index = small.index()?;
        let mut next = 0;
        for &reduced in sparse {
            if reduced {
                rows.extend(std::iter::repeat_n(0, count));
            } else {
                rows.extend_from_slice(&index[next * count..(next + 1) * count]);
                next += 1;
            }
        }
    }
    let indices = Part::Made(crate::coo::index_tensor(sparse.len(), count, &rows)?);
    Ok(Reduced::Sparse(Coo { sizes, sparse_dim: sparse.len(), indices, ..small }))
}

kernels!("amax", "TIb>T", amax);
kernels!("amin", "TIb>T", amin);
