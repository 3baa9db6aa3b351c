//! Conversions between sparse and strided tensors.

use crate::coo::{Coo, PIECE, Part, index_tensor, new_tensor, product, row_major, unsupported, wrong};
use crate::number::{Number, by_size, by_sum};
use keyway_cpu_loops::{CallExt, ViewExt};
use keyway_sdk::author::{
    Arg, Call, Element, Error, OwnedTensor, Scratch, Tensor, parallel_chunks_mut, parallel_for,
};

/// Writes a coalesced tensor into output 0, strided.
///
/// # Errors
/// Mismatched components.
pub fn write(coo: &Coo<'_>, call: &Call<'_>) -> Result<(), Error> {
    by_size!(coo.dtype(), write_of(coo, call))
}

fn write_of<T: Number>(coo: &Coo<'_>, call: &Call<'_>) -> Result<(), Error> {
    let mut out = call.contiguous_out_bits::<T>(0)?;
    parallel_chunks_mut(&mut out, PIECE, |_, out| out.fill(T::narrow(T::ZERO)))?;
    each_block::<T>(coo, &mut out, |out, block| out.copy_from_slice(block))
}

/// A new strided tensor with the values of a coalesced one.
///
/// # Errors
/// As [`write`].
pub fn strided<T: Number>(coo: &Coo<'_>) -> Result<OwnedTensor, Error> {
    let mut made = new_tensor(coo.dtype(), &coo.sizes)?;
    if let Some(out) = made.view_bits_mut::<T>()?.as_mut_slice() {
        parallel_chunks_mut(out, PIECE, |_, out| out.fill(T::narrow(T::ZERO)))?;
        each_block::<T>(coo, out, |out, block| out.copy_from_slice(block))?;
    }
    Ok(made)
}

/// Calls `body` with the elements of `out` at each entry's coordinate and the entry's elements. Entries are coalesced, so
/// that threads process disjoint ranges of `out`.
///
/// # Errors
/// Mismatched components.
pub fn each_block<T: Number>(
    coo: &Coo<'_>,
    out: &mut [T],
    body: impl Fn(&mut [T], &[T]) + Sync,
) -> Result<(), Error> {
    let (keys, width) = (coo.keys()?, coo.width());
    let values = coo.values.tensor().view_bits::<T>()?.contiguous()?;
    if width == 0 {
        return Ok(());
    }
    let entries = (PIECE / width).max(1);
    let mut parts = Vec::new();
    let (mut rest, mut begin) = (out, 0usize);
    for first in (0..coo.nnz).step_by(entries) {
        let last = coo.nnz.min(first + entries);
        let end = (keys[last - 1] as usize + 1) * width;
        if end < begin || end - begin > rest.len() {
            return Err(wrong(
                "coalesced",
                "1 only of entries in row-major order",
                "a component that was changed",
            ));
        }
        let (part, more) = std::mem::take(&mut rest).split_at_mut(end - begin);
        parts.push(std::sync::Mutex::new((part, begin, first..last)));
        (rest, begin) = (more, end);
    }
    let unordered = std::sync::atomic::AtomicBool::new(false);
    parallel_for(parts.len(), 1, |range| {
        for part in &parts[range] {
            let (out, begin, range) = &mut *part.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            for entry in range.clone() {
                let rises = entry == 0 || keys[entry - 1] < keys[entry];
                let block = (keys[entry] as usize * width)
                    .checked_sub(*begin)
                    .and_then(|at| out.get_mut(at..at + width));
                match block.filter(|_| rises) {
                    Some(block) => body(block, &values[entry * width..(entry + 1) * width]),
                    None => unordered.store(true, std::sync::atomic::Ordering::Relaxed),
                }
            }
        }
    })?;
    if unordered.into_inner() {
        return Err(wrong(
            "coalesced",
            "1 only of entries in row-major order",
            "a component that was changed",
        ));
    }
    Ok(())
}

/// The non-zero entries of a strided tensor, with its first dimensions sparse.
///
/// # Errors
/// A dtype that is not numeric; insufficient memory.
pub fn entries_of(tensor: Tensor<'_>, sparse_dim: usize) -> Result<Coo<'_>, Error> {
    by_sum!(tensor.dtype(), entries(tensor, sparse_dim))
}

fn entries<T: Number>(tensor: Tensor<'_>, sparse_dim: usize) -> Result<Coo<'_>, Error> {
    let dense = tensor.view_bits::<T>()?.contiguous()?;
    let sizes = tensor.sizes().to_vec();
    let width = product(&sizes[sparse_dim..]);
    // An entry without elements is zero.
    let places = if width == 0 { 0 } else { product(&sizes[..sparse_dim]) };
    let stored = |place: usize| dense[place * width..(place + 1) * width].iter().any(|v| !v.is_zero());
    let piece_places = (PIECE / width.max(1)).max(1);
    let range = |piece: usize| piece * piece_places..places.min((piece + 1) * piece_places);
    let mut counts = vec![0usize; places.div_ceil(piece_places)];
    parallel_chunks_mut(&mut counts, 1, |piece, count| {
        count[0] = range(piece).filter(|&place| stored(place)).count();
    })?;
    let nnz: usize = counts.iter().sum();
    let mut found = Scratch::<u64>::zeroed(nnz)?;
    let mut parts = Vec::new();
    let mut rest = &mut found[..];
    for &count in &counts {
        let (part, more) = std::mem::take(&mut rest).split_at_mut(count);
        parts.push(std::sync::Mutex::new(part));
        rest = more;
    }
    parallel_for(parts.len(), 1, |pieces| {
        for piece in pieces {
            let part = &mut *parts[piece].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let stored = range(piece).filter(|&place| stored(place));
            part.iter_mut().zip(stored).for_each(|(out, place)| *out = place as u64);
        }
    })?;
    drop(parts);

    let strides = row_major(&sizes[..sparse_dim]);
    let mut indices = Scratch::<i64>::zeroed(sparse_dim * nnz)?;
    for dim in 0..sparse_dim {
        let (stride, size) = (strides[dim], sizes[dim].max(1) as u64);
        let row = &mut indices[dim * nnz..(dim + 1) * nnz];
        row.iter_mut().zip(found.iter()).for_each(|(at, &place)| *at = (place / stride % size) as i64);
    }
    let indices = index_tensor(sparse_dim, nnz, &indices)?;
    let mut shape = vec![nnz as i64];
    shape.extend_from_slice(&sizes[sparse_dim..]);
    let mut values = new_tensor(tensor.dtype(), &shape)?;
    if let (Some(out), true) = (values.view_bits_mut::<T>()?.as_mut_slice(), width > 0) {
        for (out, &place) in out.chunks_mut(width).zip(found.iter()) {
            out.copy_from_slice(&dense[place as usize * width..][..width]);
        }
    }
    let (indices, values) = (Part::Made(indices), Part::Made(values));
    Ok(Coo { sizes, sparse_dim, nnz, coalesced: true, indices, values })
}

/// The elements of a strided tensor at the coordinates of a pattern: `[nnz, dense sizes...]`. The tensor has the pattern's sizes,
/// or broadcasts to them.
///
/// # Errors
/// Sizes that do not broadcast; mismatched components.
pub fn at_entries(tensor: Tensor<'_>, pattern: &Coo<'_>) -> Result<OwnedTensor, Error> {
    by_size!(tensor.dtype(), gathered(tensor, pattern))
}

fn gathered<T: Number>(tensor: Tensor<'_>, pattern: &Coo<'_>) -> Result<OwnedTensor, Error> {
    let (sizes, strides) = (tensor.sizes(), tensor.strides());
    let more = pattern.sizes.len().checked_sub(sizes.len());
    let fits = more.is_some_and(|more| {
        sizes.iter().zip(&pattern.sizes[more..]).all(|(own, wanted)| own == wanted || *own == 1)
    });
    let (true, Some(more)) = (fits, more) else {
        return Err(unsupported(format!(
            "a strided tensor of shape {sizes:?} with a sparse one of {:?}",
            pattern.sizes
        )));
    };
    // The tensor's stride along each dimension of the pattern; 0 if it is broadcast.
    let step = |dim: usize| match dim.checked_sub(more) {
        Some(own) if sizes[own] != 1 => strides[own] as u64,
        _ => 0,
    };
    let steps: Vec<u64> = (0..pattern.sizes.len()).map(step).collect();
    let (sparse, dense) = steps.split_at(pattern.sparse_dim);
    let offsets = pattern.keys_by(sparse)?;
    let mut shape = vec![pattern.nnz as i64];
    shape.extend_from_slice(pattern.dense_sizes());
    let view = tensor.view_bits::<T>()?;
    let within = if pattern.nnz == 0 { Vec::new() } else { offsets_of(pattern.dense_sizes(), dense) };
    let mut made = new_tensor(tensor.dtype(), &shape)?;
    let width = within.len();
    let reads = crate::kernels::gather::Reads::new(&view);
    if let (Some(out), true) = (made.view_bits_mut::<T>()?.as_mut_slice(), width > 0) {
        let entries = (PIECE / width).max(1);
        parallel_chunks_mut(out, entries * width, |piece, out| {
            for (block, &base) in out.chunks_mut(width).zip(&offsets[piece * entries..]) {
                block.iter_mut().zip(&within).for_each(|(out, &at)| *out = reads.at(base + at));
            }
        })?;
    }
    Ok(made)
}

/// The offset of each element of a block of these sizes and strides, in row-major order.
fn offsets_of(sizes: &[i64], strides: &[u64]) -> Vec<u64> {
    let mut offsets = vec![0u64];
    for (&size, &stride) in sizes.iter().zip(strides) {
        offsets = offsets
            .iter()
            .flat_map(|&base| (0..size.max(0) as u64).map(move |at| base + at * stride))
            .collect();
    }
    offsets
}

/// The values of a coalesced tensor at the coordinates of a pattern; 0 if not stored. One of the two may have more sparse
/// dimensions, which are dense in the other.
///
/// # Errors
/// Other sizes; mismatched components.
pub fn sparse_at_entries(coo: &Coo<'_>, pattern: &Coo<'_>) -> Result<OwnedTensor, Error> {
    if coo.sizes != pattern.sizes {
        return Err(unsupported(format!("tensors of shape {:?} and {:?}", coo.sizes, pattern.sizes)));
    }
    by_size!(coo.dtype(), looked_up(coo, pattern))
}

fn looked_up<T: Number>(coo: &Coo<'_>, pattern: &Coo<'_>) -> Result<OwnedTensor, Error> {
    let (keys, wanted) = (coo.keys()?, pattern.keys()?);
    let values = coo.values.tensor().view_bits::<T>()?.contiguous()?;
    let width = pattern.width();
    let mut shape = vec![pattern.nnz as i64];
    shape.extend_from_slice(pattern.dense_sizes());
    let mut made = new_tensor(coo.dtype(), &shape)?;
    // The contiguous length common to both, and its multiple in an entry of either: one of the two is 1.
    let part = width.min(coo.width());
    if let (Some(out), true) = (made.view_bits_mut::<T>()?.as_mut_slice(), part > 0) {
        let (own, theirs) = ((width / part) as u64, (coo.width() / part) as u64);
        let entries = (PIECE / width).max(1);
        parallel_chunks_mut(out, entries * width, |piece, out| {
            let mut next = 0;
            for (block, wanted) in out.chunks_mut(width).zip(&wanted[piece * entries..]) {
                for (place, out) in (wanted * own..).zip(block.chunks_mut(part)) {
                    let (key, within) =
                        if theirs == 1 { (place, 0) } else { (place / theirs, place % theirs) };
                    // The next coordinate usually follows the previous one.
                    let found =
                        if keys.get(next) == Some(&key) { Ok(next) } else { keys.binary_search(&key) };
                    next = found.map_or_else(|at| at, |at| at + usize::from(within + 1 == theirs));
                    match found {
                        Ok(at) => {
                            let from = (at * theirs as usize + within as usize) * part;
                            out.copy_from_slice(&values[from..from + part]);
                        }
                        Err(_) => out.fill(T::narrow(T::ZERO)),
                    }
                }
            }
        })?;
    }
    Ok(made)
}

/// The single element of a strided one-element tensor, or of a scalar passed for it, as an argument of another op.
///
/// # Errors
/// A tensor with more elements.
pub fn number<T: Element>(tensor: &Tensor<'_>) -> Result<Arg<'static>, Error> {
    let real = !T::from_f64(0.5).to_f64().eq(&0.0);
    if let (Some(number), true) = (tensor.number(), real) {
        return Ok(Arg::Float(number));
    }
    let element =
        tensor.view::<T>()?.iter().next().ok_or_else(|| unsupported("a factor without elements"))?;
    Ok(if real { Arg::Float(element.to_f64()) } else { Arg::Int(element.to_i64()) })
}
