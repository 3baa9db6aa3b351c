//! `sparse_mask`: the elements at the coordinates of a pattern. Scratch: 8 bytes for each entry.

use crate::coalesce::coalesced;
use crate::coo::{Coo, is_sparse, unsupported};
use crate::dense::{at_entries, sparse_at_entries};
use keyway_sdk::author::{Call, Error};

fn sparse_mask(call: &Call<'_>) -> Result<(), Error> {
    let (tensor, mask) = (call.tensor(0)?, call.tensor(1)?);
    if !is_sparse(&mask) {
        return Err(unsupported("a strided mask"));
    }
    let like = mask;
    let mask = coalesced(Coo::read(like)?)?;
    let values = match is_sparse(&tensor) {
        false => at_entries(tensor, &mask)?,
        true => sparse_at_entries(&coalesced(Coo::read(tensor)?)?, &mask)?,
    };
    mask.with_values(values).give_like(call, like)
}

kernels!("sparse_mask", "TT>T", sparse_mask);
