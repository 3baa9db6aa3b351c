//! `select` and `slice`: the entries at one index or in a range of indices. Scratch: 8 bytes for each selected entry, and
//! for each of its indices.

use crate::coo::{Coo, Part, dim_of, index_tensor, one, with_capacity, wrong};
use crate::dense::strided;
use crate::number::{Number, by_size};
use keyway_sdk::author::{Arg, Call, Error, OwnedTensor};

/// The values of these entries, in this order.
///
/// # Errors
/// Errors of the host.
pub fn values_of(coo: &Coo<'_>, entries: &[i64]) -> Result<OwnedTensor, Error> {
    let places = index_tensor(1, entries.len(), entries)?;
    let places = one("reshape", &[Arg::Owned(&places), Arg::Ints(&[entries.len() as i64])])?;
    one("index_select", &[coo.values.arg(), Arg::Int(0), Arg::Owned(&places)])
}

/// These entries of a tensor; in ascending order, the result of a coalesced tensor is coalesced.
///
/// # Errors
/// Mismatched components; errors of the host.
pub fn chosen<'a>(coo: &Coo<'a>, entries: &[i64]) -> Result<Coo<'a>, Error> {
    let rows: Vec<usize> = (0..coo.sparse_dim).collect();
    moved(coo, entries, &rows, coo.sizes.clone(), |_, at| at)
}

/// These entries with these rows of their indices, each index mapped by `place`.
///
/// # Errors
/// As [`chosen`].
pub fn moved<'a>(
    coo: &Coo<'a>,
    entries: &[i64],
    rows: &[usize],
    sizes: Vec<i64>,
    place: impl Fn(usize, i64) -> i64,
) -> Result<Coo<'a>, Error> {
    let index = coo.index()?;
    let mut indices = with_capacity(rows.len().saturating_mul(entries.len()))?;
    for &row in rows {
        let from = &index[row * coo.nnz..(row + 1) * coo.nnz];
        indices.extend(entries.iter().map(|&entry| place(row, from[entry as usize])));
    }
    let nnz = entries.len();
    let (indices, values) =
        (Part::Made(index_tensor(rows.len(), nnz, &indices)?), Part::Made(values_of(coo, entries)?));
    Ok(Coo { sizes, sparse_dim: rows.len(), nnz, coalesced: coo.coalesced, indices, values })
}

fn has_dims(coo: &Coo<'_>) -> Result<(), Error> {
    if coo.sizes.is_empty() {
        return Err(wrong("self", "a tensor that has dimensions", "one of no dimensions"));
    }
    Ok(())
}

fn select(call: &Call<'_>) -> Result<(), Error> {
    let coo = Coo::argument(call, 0)?;
    has_dims(&coo)?;
    let dim = dim_of(call.int(1)?, coo.sizes.len())?;
    let size = coo.sizes.get(dim).copied().unwrap_or(0);
    let given = call.int(2)?;
    let index = if given < 0 { given + size } else { given };
    if !(0..size).contains(&index) {
        return Err(wrong("index", format!("an index in {}..{size}", -size), given.to_string()));
    }
    let mut sizes = coo.sizes.clone();
    sizes.remove(dim);
    if dim >= coo.sparse_dim {
        let along = (dim - coo.sparse_dim + 1) as i64;
        let values = one("select", &[coo.values.arg(), Arg::Int(along), Arg::Int(index)])?;
        return Coo { sizes, values: Part::Made(values), ..coo }.give(call);
    }
    let entries = entries_within(&coo, dim, index, index + 1, 1)?;
    let rows: Vec<usize> = (0..coo.sparse_dim).filter(|&row| row != dim).collect();
    let made = moved(&coo, &entries, &rows, sizes, |_, at| at)?;
    if !rows.is_empty() {
        return made.give(call);
    }
    // No sparse dimension remains.
    fn whole<T: Number>(coo: &Coo<'_>) -> Result<OwnedTensor, Error> {
        strided::<T>(coo)
    }
    let made = crate::coalesce::coalesced(made)?;
    call.set_output(0, by_size!(made.dtype(), whole(&made))?)
}

/// The first entry at this index or after it, for sorted entries.
pub fn first_of(row: &[i64], at: i64) -> usize {
    row.partition_point(|&own| own < at)
}

/// The entries whose index in a dimension is in a range with step `step`.
fn entries_within(coo: &Coo<'_>, dim: usize, begin: i64, end: i64, step: i64) -> Result<Vec<i64>, Error> {
    let index = coo.index()?;
    let row = &index[dim * coo.nnz..(dim + 1) * coo.nnz];
    if coo.coalesced && dim == 0 && step == 1 {
        let found = first_of(row, begin) as i64..first_of(row, end) as i64;
        let mut entries = with_capacity(found.clone().count())?;
        entries.extend(found);
        return Ok(entries);
    }
    let within = |at: i64| (begin..end).contains(&at) && (at - begin) % step == 0;
    let mut entries = with_capacity(row.iter().filter(|at| within(**at)).count())?;
    entries.extend(row.iter().enumerate().filter(|(_, at)| within(**at)).map(|(entry, _)| entry as i64));
    Ok(entries)
}

fn slice(call: &Call<'_>) -> Result<(), Error> {
    let coo = Coo::argument(call, 0)?;
    let dim = dim_of(call.int(1)?, coo.sizes.len())?;
    let size = coo.sizes.get(dim).copied().unwrap_or(0);
    let step = call.int(4)?;
    has_dims(&coo)?;
    if step < 1 {
        return Err(wrong("step", "a step of 1 or more", step.to_string()));
    }
    let bound = |at: usize, default: i64| -> Result<i64, Error> {
        let given = if call.is_none(at)? { default } else { call.int(at)? };
        Ok(if given < 0 { given.saturating_add(size) } else { given }.clamp(0, size))
    };
    let begin = bound(2, 0)?;
    let end = bound(3, size)?.max(begin);
    let mut sizes = coo.sizes.clone();
    sizes[dim] = if end > begin { (end - begin - 1) / step + 1 } else { 0 };
    if dim >= coo.sparse_dim {
        let along = (dim - coo.sparse_dim + 1) as i64;
        let args = [coo.values.arg(), Arg::Int(along), Arg::Int(begin), Arg::Int(end), Arg::Int(step)];
        let values = one("slice", &args)?;
        return Coo { sizes, values: Part::Made(values), ..coo }.give(call);
    }
    let entries = entries_within(&coo, dim, begin, end, step)?;
    let rows: Vec<usize> = (0..coo.sparse_dim).collect();
    let place = |row: usize, at: i64| if row == dim { (at - begin) / step } else { at };
    moved(&coo, &entries, &rows, sizes, place)?.give(call)
}

kernels!("select", "Tii>T", select);
kernels!("slice", "Tiiii>T", slice);
