//! `clone` and `to_dtype`. Scratch: none except the result, and for a cast that rounds that of coalescing.

use crate::coalesce::coalesced;
use crate::coo::{Coo, Part, one};
use crate::csr::{Csr, is_csr, map_values};
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::author::{Arg, Call, Error};

/// Copies each component to memory of its own.
fn copied(call: &Call<'_>) -> Result<(), Error> {
    let copy = |part: &Part<'_>| one("clone", &[part.arg(), Arg::Str("contiguous")]).map(Part::Made);
    if is_csr(&call.tensor(0)?) {
        let csr = Csr::read(call.tensor(0)?)?;
        let (crow, col, values) = (copy(&csr.crow)?, copy(&csr.col)?, copy(&csr.values)?);
        return Csr { crow, col, values, ..csr }.give(call);
    }
    let coo = Coo::argument(call, 0)?;
    let (indices, values) = (copy(&coo.indices)?, copy(&coo.values)?);
    Coo { indices, values, ..coo }.give(call)
}

/// A cast rounds the sum of duplicates; a cast to wider floats is exact.
fn to_dtype(call: &Call<'_>) -> Result<(), Error> {
    let to = call.dtype(1)?;
    if map_values(call, 0, |values| one("to_dtype", &[values, Arg::Dtype(to)]))? {
        return Ok(());
    }
    let coo = Coo::argument(call, 0)?;
    let exact = match coo.dtype() {
        dtype::F16 | dtype::BF16 => matches!(to, dtype::F32 | dtype::F64),
        dtype::F32 => to == dtype::F64,
        _ => false,
    };
    let coo = if exact { coo } else { coalesced(coo)? };
    let values = one("to_dtype", &[coo.values.arg(), Arg::Dtype(to)])?;
    coo.with_values(values).give(call)
}

kernels!("clone", "TS>T", copied);
kernels!("to_dtype", "Td>T", to_dtype);
