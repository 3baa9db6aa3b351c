//! `index_select`. Scratch: 12 bytes for each index, 4 for each size of the dimension unless that is much larger than the numbers
//! of entries and indices, 8 for each entry of the result and of its indices.

use super::select::{first_of, values_of};
use crate::coalesce::coalesced;
use crate::coo::{Coo, Part, dim_of, index_tensor, more_room, one, with_capacity, wrong};
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Arg, Call, Error, Scratch};

/// The positions of each index in a list of indices.
struct Places {
    /// The positions, sorted by index.
    places: Scratch<u32>,
    begins: Begins,
}

/// The start of the positions of an index.
enum Begins {
    /// For each index of the dimension, and the end.
    Counted(Scratch<u32>),
    /// The sorted indices of the list, if the dimension is much larger.
    Sorted(Scratch<i64>),
}

impl Places {
    fn of(wanted: &[i64], size: usize, nnz: usize) -> Result<Places, Error> {
        let mut places = Scratch::<u32>::zeroed(wanted.len())?;
        if size > (8 * (nnz + wanted.len())).max(1 << 16) {
            places.iter_mut().zip(0..).for_each(|(place, nth)| *place = nth);
            places.sort_by_key(|&place| wanted[place as usize]);
            let mut sorted = Scratch::<i64>::zeroed(wanted.len())?;
            sorted.iter_mut().zip(places.iter()).for_each(|(out, &place)| *out = wanted[place as usize]);
            return Ok(Places { places, begins: Begins::Sorted(sorted) });
        }
        // A counting sort in descending order: the end of each index's positions is decremented to their start.
        let mut begins = Scratch::<u32>::zeroed(size + 1)?;
        wanted.iter().for_each(|&at| begins[at as usize] += 1);
        (1..begins.len()).for_each(|at| begins[at] += begins[at - 1]);
        for (place, &at) in wanted.iter().enumerate().rev() {
            begins[at as usize] -= 1;
            places[begins[at as usize] as usize] = place as u32;
        }
        Ok(Places { places, begins: Begins::Counted(begins) })
    }

    fn of_index(&self, at: i64) -> &[u32] {
        let range = match &self.begins {
            Begins::Counted(begins) => begins[at as usize] as usize..begins[at as usize + 1] as usize,
            Begins::Sorted(sorted) => {
                sorted.partition_point(|&known| known < at)..sorted.partition_point(|&known| known <= at)
            }
        };
        &self.places[range]
    }
}

fn index_select(call: &Call<'_>) -> Result<(), Error> {
    let coo = Coo::argument(call, 0)?;
    let dim = dim_of(call.int(1)?, coo.sizes.len())?;
    let mut sizes = coo.sizes.clone();
    let wanted = call.contiguous::<i64>(2)?;
    let Some(size) = sizes.get_mut(dim) else {
        return Err(wrong("self", "a tensor that has dimensions", "one of no dimensions"));
    };
    let had = std::mem::replace(size, wanted.len() as i64);
    if dim >= coo.sparse_dim {
        let along = (dim - coo.sparse_dim + 1) as i64;
        let values = one("index_select", &[coo.values.arg(), Arg::Int(along), Arg::Tensor(call.tensor(2)?)])?;
        return Coo { sizes, values: Part::Made(values), ..coo }.give(call);
    }
    if let Some(outside) = wanted.iter().find(|at| !(0..had).contains(*at)) {
        return Err(wrong("index", format!("indices in 0..{had}"), outside.to_string()));
    }
    let (mut entries, mut made) = (Vec::new(), Vec::new());
    // Rows of a coalesced tensor are contiguous, and gathered in the requested order.
    let by_row = coo.coalesced && dim == 0;
    if by_row {
        let index = coo.index()?;
        let row = &index[..coo.nnz];
        for (place, &at) in wanted.iter().enumerate() {
            let found = first_of(row, at)..first_of(row, at + 1);
            more_room(&mut made, found.len())?;
            more_room(&mut entries, found.len())?;
            made.extend(std::iter::repeat_n(place as i64, found.len()));
            entries.extend(found.map(|entry| entry as i64));
        }
    } else {
        let places = Places::of(&wanted, had as usize, coo.nnz)?;
        let index = coo.index()?;
        for (entry, &at) in index[dim * coo.nnz..(dim + 1) * coo.nnz].iter().enumerate() {
            let found = places.of_index(at);
            more_room(&mut made, found.len())?;
            more_room(&mut entries, found.len())?;
            made.extend(found.iter().map(|&place| i64::from(place)));
            entries.extend(found.iter().map(|_| entry as i64));
        }
    }
    let mut indices = with_capacity(coo.sparse_dim.saturating_mul(entries.len()))?;
    let index = coo.index()?;
    for row in 0..coo.sparse_dim {
        if row == dim {
            indices.extend_from_slice(&made);
        } else {
            let from = &index[row * coo.nnz..(row + 1) * coo.nnz];
            indices.extend(entries.iter().map(|&entry| from[entry as usize]));
        }
    }
    let (nnz, sparse_dim) = (entries.len(), coo.sparse_dim);
    let values = Part::Made(values_of(&coo, &entries)?);
    let indices = Part::Made(index_tensor(sparse_dim, nnz, &indices)?);
    let picked = Coo { sizes, sparse_dim, nnz, coalesced: by_row, indices, values };
    // There are no new duplicates: only the order must be restored.
    let picked = if coo.coalesced && !by_row { coalesced(picked)? } else { picked };
    picked.give(call)
}

kernels!("index_select", "TiT>T", index_select);
