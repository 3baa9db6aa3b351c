//! `expand`: entries are repeated along sparse dimensions, and blocks share their memory along dense ones. Scratch: the indices
//! and values of the result, and that of coalescing it.

use super::select::values_of;
use crate::coalesce::coalesced;
use crate::coo::{Coo, Part, index_tensor, one, wrong};
use keyway_sdk::author::{Arg, Call, Error};

fn expand(call: &Call<'_>) -> Result<(), Error> {
    let mut coo = Coo::argument(call, 0)?;
    let given = call.ints(1)?;
    let refused = |coo: &Coo<'_>| {
        Err(wrong("size", format!("sizes that {:?} can be repeated to", coo.sizes), format!("{given:?}")))
    };
    let Some(lead) = given.len().checked_sub(coo.sizes.len()) else { return refused(&coo) };
    let mut sizes = Vec::with_capacity(given.len());
    for (dim, &size) in given.iter().enumerate() {
        let own = dim.checked_sub(lead).map(|dim| coo.sizes[dim]);
        sizes.push(match own {
            Some(own) if size == -1 || size == own => own,
            Some(1) | None if size >= 0 => size,
            _ => return refused(&coo),
        });
    }
    let sparse_dim = lead + coo.sparse_dim;
    if sizes[sparse_dim..] != *coo.dense_sizes() {
        let shape: Vec<i64> =
            std::iter::once(coo.nnz as i64).chain(sizes[sparse_dim..].iter().copied()).collect();
        coo.values = Part::Made(one("expand", &[coo.values.arg(), Arg::Ints(&shape)])?);
    }
    let places = sizes[..sparse_dim].iter().try_fold(1i64, |all, &size| all.checked_mul(size.max(1)));
    if places.is_none() {
        let expected = format!("sparse dimensions of at most {} coordinates", i64::MAX);
        return Err(wrong("size", expected, format!("{:?}", &sizes[..sparse_dim])));
    }
    // Number of repetitions of each entry along each sparse dimension.
    let times = |dim: usize| match dim.checked_sub(lead) {
        Some(own) if coo.sizes[own] == sizes[dim] => 1,
        _ => sizes[dim],
    };
    let times: Vec<i64> = (0..sparse_dim).map(times).collect();
    let Some(repeats) = times.iter().try_fold(1i64, |all, &n| all.checked_mul(n)) else {
        return refused(&coo);
    };
    let Some(nnz) = (coo.nnz as i64).checked_mul(repeats) else { return refused(&coo) };
    let (nnz, repeats) = (nnz as usize, repeats as usize);
    let (mut entries, mut indices) = (Vec::new(), Vec::new());
    let (of_entries, of_indices) = (nnz, sparse_dim.saturating_mul(nnz));
    if entries.try_reserve_exact(of_entries).is_err() || indices.try_reserve_exact(of_indices).is_err() {
        let requested = (of_entries as u64).saturating_add(of_indices as u64).saturating_mul(8);
        return Err(Error::OutOfMemory { requested, available: 0 });
    }
    // Without entries nothing is repeated, for any number of repetitions.
    let repeats = if nnz == 0 { 0 } else { repeats };
    entries.extend((0..repeats).flat_map(|_| 0..coo.nnz as i64));
    {
        let index = coo.index()?;
        let mut inner = repeats;
        for (dim, &n) in times.iter().enumerate() {
            let own = dim.checked_sub(lead).map(|row| &index[row * coo.nnz..(row + 1) * coo.nnz]);
            inner /= n.max(1) as usize;
            for repeat in 0..repeats {
                let at = (repeat / inner.max(1)) as i64 % n.max(1);
                match own {
                    Some(own) if n == 1 => indices.extend_from_slice(own),
                    _ => indices.extend(std::iter::repeat_n(at, coo.nnz)),
                }
            }
        }
    }
    let values = Part::Made(values_of(&coo, &entries)?);
    let indices = Part::Made(index_tensor(sparse_dim, nnz, &indices)?);
    let made = Coo { sizes, sparse_dim, nnz, coalesced: false, indices, values };
    let made = if coo.coalesced { coalesced(made)? } else { made };
    made.give(call)
}

kernels!("expand", "TI>T", expand);
