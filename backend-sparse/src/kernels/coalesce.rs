//! `coalesce` and `to_sparse`. Scratch: see [`crate::coalesce`]; `to_sparse` uses 8 bytes for each entry and 8 for each of its
//! indices.

use crate::coalesce::coalesced;
use crate::coo::{Coo, is_coo, unsupported, wrong};
use crate::csr::is_csr;
use crate::dense::entries_of;
use keyway_sdk::author::{Call, Error};

fn coalesce(call: &Call<'_>) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    if is_csr(&tensor) {
        return call.set_output(0, tensor.retain()?);
    }
    coalesced(Coo::read(tensor)?)?.give(call)
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
    if !is_csr(&tensor) {
        return entries_of(tensor, sparse_dim)?.give(call);
    }
    if sparse_dim != 2 {
        return Err(unsupported(format!(
            "compressed rows with {sparse_dim} sparse dimensions, which have 2,"
        )));
    }
    call.set_output(0, Coo::read(tensor)?.build()?)
}

kernels!("coalesce", "T>T", coalesce);
kernel!("to_sparse", "Ti>T", "strided", to_sparse);
kernel!("to_sparse", "Ti>T", "sparse_csr", to_sparse);
