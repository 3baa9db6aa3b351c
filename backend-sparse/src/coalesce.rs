//! Coalescing: entries in row-major order without duplicates; duplicates are added up in the order of the entries.
//!
//! Coalesced entries are not copied, and sorted ones are not sorted again. Sums begin with the first value, so that a single -0.0
//! is preserved; sums that cancel remain as explicit zeros. Floats are accumulated in f64 and rounded once, so that the error of
//! a sum does not grow with the number of addends. Scratch: 16 bytes for each entry if entries are sorted as one integer each
//! ([`packed`](crate::packed)), else up to 28: 8 for its key, and those of [`sort`](crate::sort).

use crate::coo::{Coo, PIECE, Part, index_tensor, new_tensor};
use crate::number::{Number, by_sum};
use crate::packed::{Fields, Summed, summed};
use crate::sort::{Order, check_count, order, sorted_places};
use keyway_cpu_loops::ViewExt;
use keyway_sdk::author::{Error, OwnedTensor, Scratch, new_host_tensor, parallel_chunks_mut};

/// The entries of a tensor grouped by coordinate: the source entries of each result entry.
pub struct Groups {
    /// Entries of the source in the order of their keys.
    pub places: Scratch<u32>,
    /// Offsets in `places` of the entries of each result, and the end.
    pub bounds: Scratch<u64>,
}

impl Groups {
    /// Number of results.
    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// The source entries of one result, in order.
    pub fn of(&self, result: usize) -> &[u32] {
        &self.places[self.bounds[result] as usize..self.bounds[result + 1] as usize]
    }
}

/// Groups entries by their keys, in ascending order of keys.
///
/// # Errors
/// Insufficient memory.
pub fn groups(keys: &[u64]) -> Result<Groups, Error> {
    let places = match order(keys) {
        Order::Any => sorted_places(keys)?,
        _ => {
            check_count(keys)?;
            let mut places = Scratch::<u32>::zeroed(keys.len())?;
            places.iter_mut().enumerate().for_each(|(at, place)| *place = at as u32);
            places
        }
    };
    let key = |nth: usize| keys[places[nth] as usize];
    let begins = |nth: usize| nth == 0 || key(nth) != key(nth - 1);
    // The number of results that begin in each work item, then the offset of each work item's results.
    let mut counts = vec![0usize; keys.len().div_ceil(PIECE)];
    parallel_chunks_mut(&mut counts, 1, |piece, count| {
        count[0] = (piece * PIECE..keys.len().min((piece + 1) * PIECE)).filter(|&nth| begins(nth)).count();
    })?;
    let total: usize = counts.iter().sum();
    let mut bounds = Scratch::<u64>::zeroed(total + 1)?;
    bounds[total] = keys.len() as u64;
    let mut at = 0;
    for nth in 0..keys.len() {
        if begins(nth) {
            bounds[at] = nth as u64;
            at += 1;
        }
    }
    Ok(Groups { places, bounds })
}

/// The indices of the first entry of each group, for the rows of `rows`.
///
/// # Errors
/// As [`Coo::index`]; insufficient memory.
pub fn first_indices(coo: &Coo<'_>, rows: &[usize], groups: &Groups) -> Result<OwnedTensor, Error> {
    let (index, count) = (coo.index()?, groups.len());
    let mut made = new_host_tensor::<i64>(&[rows.len() as i64, count as i64])?;
    if let (Some(out), true) = (made.view_mut::<i64>()?.as_mut_slice(), count > 0) {
        for (out, &row) in out.chunks_mut(count).zip(rows) {
            let from = &index[row * coo.nnz..(row + 1) * coo.nnz];
            parallel_chunks_mut(out, PIECE, |piece, out| {
                let first = piece * PIECE;
                out.iter_mut().enumerate().for_each(|(n, at)| *at = from[groups.of(first + n)[0] as usize]);
            })?;
        }
    }
    Ok(made)
}

/// The sums of each group's values: `[groups, dense sizes...]`.
fn sums<T: Number>(coo: &Coo<'_>, groups: &Groups) -> Result<OwnedTensor, Error> {
    let values = coo.values.tensor().view_bits::<T>()?.contiguous()?;
    let width = coo.width();
    let mut sizes = vec![groups.len() as i64];
    sizes.extend_from_slice(coo.dense_sizes());
    let mut made = new_tensor(coo.dtype(), &sizes)?;
    let mut view = made.view_bits_mut::<T>()?;
    if let (Some(out), true) = (view.as_mut_slice(), width > 0) {
        let entries = (PIECE / width).max(1);
        parallel_chunks_mut(out, entries * width, |piece, out| {
            let mut wide: Vec<T::Total> = vec![T::narrow(T::ZERO).addend(); width];
            for (n, out) in out.chunks_mut(width).enumerate() {
                let group = groups.of(piece * entries + n);
                let first = group[0] as usize * width;
                if group.len() == 1 {
                    out.copy_from_slice(&values[first..first + width]);
                    continue;
                }
                wide.iter_mut().zip(&values[first..]).for_each(|(sum, v)| *sum = v.addend());
                for &entry in &group[1..] {
                    let block = &values[entry as usize * width..][..width];
                    wide.iter_mut().zip(block).for_each(|(sum, v)| *sum = T::with(*sum, v.addend()));
                }
                out.iter_mut().zip(&wide).for_each(|(out, sum)| *out = T::rounded(*sum));
            }
        })?;
    }
    Ok(made)
}

/// As [`coalesced`], but trusts the flag: for code that checks the order itself, or is linear in the values.
///
/// # Errors
/// As [`coalesced`].
pub fn by_flag(coo: Coo<'_>) -> Result<Coo<'_>, Error> {
    if coo.coalesced { Ok(coo) } else { coalesced(coo) }
}

/// The same tensor coalesced. The flag is not trusted: a component may have been changed since.
///
/// # Errors
/// Mismatched components; a dtype that is not numeric; insufficient memory.
pub fn coalesced(coo: Coo<'_>) -> Result<Coo<'_>, Error> {
    let (index, greatest) = coo.bounded_index()?;
    let fields = Fields::of(&greatest);
    let rise = match &fields {
        Some(fields) => fields.rise(&index, coo.nnz),
        None => order(&coo.keys()?) == Order::Rising,
    };
    let packed = match &fields {
        Some(fields) if !rise => by_sum!(coo.dtype(), summed(&coo, &index, fields))?,
        _ => None,
    };
    drop(index);
    if rise {
        return Ok(Coo { coalesced: true, ..coo });
    }
    let summed = match packed {
        Some(packed) => packed,
        None => by_places(&coo)?,
    };
    let (indices, values) = (Part::Made(summed.indices), Part::Made(summed.values));
    let (sizes, sparse_dim) = (coo.sizes, coo.sparse_dim);
    Ok(Coo { sizes, sparse_dim, nnz: summed.nnz, coalesced: true, indices, values })
}

/// The entries in the order of their keys, with duplicates added up.
fn by_places(coo: &Coo<'_>) -> Result<Summed, Error> {
    let groups = groups(&coo.keys()?)?;
    let rows: Vec<usize> = (0..coo.sparse_dim).collect();
    let indices = if coo.sparse_dim == 0 {
        index_tensor(0, groups.len(), &[])?
    } else {
        first_indices(coo, &rows, &groups)?
    };
    let values = by_sum!(coo.dtype(), sums(coo, &groups))?;
    Ok(Summed { indices, values, nnz: groups.len() })
}
