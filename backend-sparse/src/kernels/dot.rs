//! `dot` of sparse vectors, or of a sparse and a strided one: a strided 0-d result. Scratch: 8 bytes for each entry, and
//! that of coalescing for two sparse vectors.

use super::mul::common;
use crate::coo::{Coo, is_coo, one, unsupported};
use crate::dense::at_entries;
use keyway_sdk::author::{Arg, Call, Error, Tensor};

/// Reads a vector whose single dimension is sparse.
fn vector(tensor: Tensor<'_>) -> Result<Coo<'_>, Error> {
    let coo = Coo::read(tensor)?;
    match (coo.sizes.len(), coo.sparse_dim) {
        (1, 1) => Ok(coo),
        _ => Err(unsupported("a product of vectors where one has a dense dimension")),
    }
}

fn dot(call: &Call<'_>) -> Result<(), Error> {
    let (left, right) = (call.tensor(0)?, call.tensor(1)?);
    let (coo, other) = match (is_coo(&left), is_coo(&right)) {
        (true, true) => {
            let (a, b) = common(vector(left)?, vector(right)?)?;
            return call.set_output(0, one("dot", &[a.values.arg(), b.values.arg()])?);
        }
        (true, false) => (vector(left)?, right),
        _ => (vector(right)?, left),
    };
    let there = at_entries(other, &coo)?;
    call.set_output(0, one("dot", &[coo.values.arg(), Arg::Owned(&there)])?)
}

kernel!("dot", "TT>T", dot);
