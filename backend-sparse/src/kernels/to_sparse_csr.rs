//! `to_sparse_csr`: a histogram of the rows of a COO tensor, sorted first if needed, without a strided intermediate.
//! Scratch: that of coalescing, and for a strided matrix 24 bytes for each entry.

use crate::coalesce::coalesced;
use crate::coo::{Coo, is_coo};
use crate::csr::{Csr, is_csr};
use crate::dense::entries_of;
use keyway_sdk::author::{Call, Error};

fn to_sparse_csr(call: &Call<'_>) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let made = if is_csr(&tensor) {
        tensor.retain()?
    } else if is_coo(&tensor) {
        Csr::of(&coalesced(Coo::read(tensor)?)?)?
    } else {
        Csr::of(&entries_of(tensor, 2)?)?
    };
    call.set_output(0, made)
}

kernels!("to_sparse_csr", "T>T", to_sparse_csr);
kernel!("to_sparse_csr", "T>T", "strided", to_sparse_csr);
