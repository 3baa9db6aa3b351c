//! `index_select`. Scratch: 4 bytes for each size of the dimension, 8 for each index and for each entry of the result and of
//! its indices.

use super::select::values_of;
use crate::coalesce::coalesced;
use crate::coo::{Coo, Part, dim_of, index_tensor, one, wrong};
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Arg, Call, Error, Scratch};

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
    // The places in the list of each index: a counting sort.
    let mut begins = Scratch::<u32>::zeroed(had as usize + 1)?;
    wanted.iter().for_each(|&at| begins[at as usize + 1] += 1);
    (1..begins.len()).for_each(|at| begins[at] += begins[at - 1]);
    let mut next = begins.to_vec();
    let mut places = vec![0i64; wanted.len()];
    for (place, &at) in wanted.iter().enumerate() {
        places[next[at as usize] as usize] = place as i64;
        next[at as usize] += 1;
    }
    let (mut entries, mut made) = (Vec::new(), Vec::new());
    {
        let index = coo.index()?;
        for (entry, &at) in index[dim * coo.nnz..(dim + 1) * coo.nnz].iter().enumerate() {
            let found = &places[begins[at as usize] as usize..begins[at as usize + 1] as usize];
            made.extend_from_slice(found);
            entries.extend(found.iter().map(|_| entry as i64));
        }
    }
    let mut indices = Vec::with_capacity(coo.sparse_dim * entries.len());
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
    let picked = Coo { sizes, sparse_dim, nnz, coalesced: false, indices, values };
    // Each place comes once where it did before: the order alone is to be found again.
    let picked = if coo.coalesced { coalesced(picked)? } else { picked };
    picked.give(call)
}

kernels!("index_select", "TiT>T", index_select);
