//! `coalesce` and `to_sparse`. Scratch: see [`crate::coalesce`]; `to_sparse` keeps 8 bytes for each entry and 8 for each of
//! its indices.

use crate::coalesce::coalesced;
use crate::coo::{Coo, is_coo, wrong};
use crate::dense::entries_of;
use keyway_sdk::author::{Call, Error};

fn coalesce(call: &Call<'_>) -> Result<(), Error> {
    coalesced(Coo::argument(call, 0)?)?.give(call)
}

fn to_sparse(call: &Call<'_>) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    if is_coo(&tensor) {
        return Err(wrong("self", "a strided tensor", "one of layout sparse_coo; call `to_dense()` first"));
    }
    let sparse_dim = usize::try_from(call.int(1)?).unwrap_or(usize::MAX);
    if sparse_dim > tensor.ndim() {
        return Err(wrong("sparse_dim", format!("a number up to {}", tensor.ndim()), sparse_dim.to_string()));
    }
    entries_of(tensor, sparse_dim)?.give(call)
}

kernel!("coalesce", "T>T", coalesce);
kernel!("to_sparse", "Ti>T", "strided", to_sparse);
