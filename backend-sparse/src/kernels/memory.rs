//! `clone` and `to_dtype`.

use crate::coalesce::coalesced;
use crate::coo::{Coo, Part, one};
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::author::{Arg, Call, Error};

/// Memory of its own for both components.
fn copied(call: &Call<'_>) -> Result<(), Error> {
    let coo = Coo::argument(call, 0)?;
    let copy = |part: &Part<'_>| one("clone", &[part.arg(), Arg::Str("contiguous")]).map(Part::Made);
    let (indices, values) = (copy(&coo.indices)?, copy(&coo.values)?);
    Coo { indices, values, ..coo }.give(call)
}

/// A cast rounds each place's sum; one to wider floats rounds nothing.
fn to_dtype(call: &Call<'_>) -> Result<(), Error> {
    let (coo, to) = (Coo::argument(call, 0)?, call.dtype(1)?);
    let exact = match coo.dtype() {
        dtype::F16 | dtype::BF16 => matches!(to, dtype::F32 | dtype::F64),
        dtype::F32 => to == dtype::F64,
        _ => false,
    };
    let coo = if exact { coo } else { coalesced(coo)? };
    let values = one("to_dtype", &[coo.values.arg(), Arg::Dtype(to)])?;
    coo.with_values(values).give(call)
}

kernel!("clone", "TS>T", copied);
kernel!("to_dtype", "Td>T", to_dtype);
