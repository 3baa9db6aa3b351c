//! `pow` with a positive scalar, which preserves 0. Scratch: that of coalescing.

use super::mul::scalar;
use crate::coalesce::coalesced;
use crate::coo::{Coo, is_sparse, one, unsupported};
use keyway_sdk::author::{Arg, Call, Error};

fn pow(call: &Call<'_>) -> Result<(), Error> {
    let (base, exponent) = (call.tensor(0)?, call.tensor(1)?);
    if !is_sparse(&base) || is_sparse(&exponent) || exponent.numel() != 1 || exponent.ndim() > 0 {
        return Err(unsupported("a power of a sparse tensor whose exponent is not a scalar"));
    }
    let exponent = scalar(&exponent)?;
    let keeps_zero = match exponent {
        Arg::Int(exponent) => exponent > 0,
        Arg::Float(exponent) => exponent > 0.0,
        _ => false,
    };
    if !keeps_zero {
        return Err(unsupported("a power that is not above 0, and so is not 0 where nothing is stored,"));
    }
    let coo = coalesced(Coo::read(base)?)?;
    let values = one("pow", &[coo.values.arg(), exponent])?;
    coo.with_values(values).give(call)
}

kernels!("pow", "TT>T", pow);
