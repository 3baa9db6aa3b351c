//! `cat`: concatenates entries. Scratch: the indices of all.

use crate::coalesce::coalesced;
use crate::coo::{Coo, Part, dim_of, index_tensor, is_sparse, one, wrong};
use keyway_sdk::author::{Arg, Call, Error, Scratch};

/// The concatenated entries of all, unsorted.
///
/// # Errors
/// Errors of the host; mismatched components.
pub fn joined<'a>(all: &[Coo<'a>]) -> Result<Coo<'a>, Error> {
    let first = all.first().ok_or_else(|| wrong("tensors", "at least one tensor", "none"))?;
    let parts: Vec<Vec<i64>> = vec![vec![0; first.sparse_dim]; all.len()];
    with_shifts(all, &parts, first.sizes.clone())
}

/// The concatenated entries, with each tensor's indices shifted.
fn with_shifts<'a>(all: &[Coo<'a>], shifts: &[Vec<i64>], sizes: Vec<i64>) -> Result<Coo<'a>, Error> {
    let sparse_dim = all[0].sparse_dim;
    let nnz: usize = all.iter().map(|coo| coo.nnz).sum();
    let mut indices = Scratch::<i64>::zeroed(sparse_dim * nnz)?;
    let mut begin = 0;
    for (coo, shifts) in all.iter().zip(shifts) {
        let index = coo.index()?;
        for row in 0..sparse_dim {
            let out = &mut indices[row * nnz + begin..][..coo.nnz];
            let from = &index[row * coo.nnz..(row + 1) * coo.nnz];
            out.iter_mut().zip(from).for_each(|(out, at)| *out = at + shifts[row]);
        }
        begin += coo.nnz;
    }
    let indices = Part::Made(index_tensor(sparse_dim, nnz, &indices)?);
    // The host accepts lists of the call's tensors alone: tensors created here are passed by their own handles.
    let values: Vec<_> = all.iter().map(|coo| coo.values.tensor()).collect();
    let values = Part::Made(one("cat", &[Arg::Tensors(&values), Arg::Int(0)])?);
    Ok(Coo { sizes, sparse_dim, nnz, coalesced: false, indices, values })
}

fn cat(call: &Call<'_>) -> Result<(), Error> {
    let tensors = call.tensors(0)?;
    if !tensors.iter().all(|tensor| is_sparse(&tensor)) {
        return Err(wrong(
            "tensors",
            "only sparse tensors: convert the others with `to_sparse()`, or these with `to_dense()`",
            "strided ones among them",
        ));
    }
    let mut all = tensors.iter().map(Coo::read).collect::<Result<Vec<_>, Error>>()?;
    let (sizes, sparse_dim) = match all.first() {
        Some(first) => (first.sizes.clone(), first.sparse_dim),
        None => return Err(wrong("tensors", "at least one tensor", "none")),
    };
    if let Some(other) = all.iter().find(|coo| coo.sparse_dim != sparse_dim || coo.sizes.len() != sizes.len())
    {
        let expected =
            format!("tensors of {} dimensions, {sparse_dim} of them sparse, as the first one", sizes.len());
        let got = format!("one of {}, {} of them sparse", other.sizes.len(), other.sparse_dim);
        return Err(wrong("tensors", expected, got));
    }
    let dim = dim_of(call.int(1)?, sizes.len())?;
    let total =
        all.iter().try_fold(0i64, |total, coo| total.checked_add(coo.sizes[dim])).ok_or_else(|| {
            wrong("tensors", format!("sizes that add up to at most {}", i64::MAX), "larger ones")
        })?;
    let mut made = sizes;
    made[dim] = total;
    let in_order = all.iter().all(|coo| coo.coalesced);
    let mut shifts = Vec::new();
    let mut before = 0;
    for coo in &mut all {
        let mut shift = vec![0; sparse_dim];
        if dim < sparse_dim {
            shift[dim] = before;
        } else {
            // Each block is padded with zeros before and after, and the blocks of duplicates are added.
            let behind = made.len() - 1 - dim;
            let mut pad = vec![0i64; 2 * behind];
            pad.extend([before, total - before - coo.sizes[dim]]);
            let values = one("constant_pad", &[coo.values.arg(), Arg::Ints(&pad), Arg::Int(0)])?;
            coo.values = Part::Made(values);
        }
        before += coo.sizes[dim];
        shifts.push(shift);
    }
    // Concatenation along the first dimension preserves the order of entries.
    let mut joined = with_shifts(&all, &shifts, made)?;
    if dim == 0 && sparse_dim > 0 && in_order {
        joined.coalesced = true;
    } else if in_order {
        joined = coalesced(joined)?;
    }
    joined.give(call)
}

kernels!("cat", "Li>T", cat);
