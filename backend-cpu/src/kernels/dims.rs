//! Dimension arguments.

use keyway_sdk::author::{Call, Error};

/// A dimension of a tensor of `ndim` dimensions as an index from 0; a 0-d tensor has dimensions 0 and -1.
pub fn wrapped(dim: i64, ndim: usize) -> usize {
    (if dim < 0 { dim + ndim.max(1) as i64 } else { dim }) as usize
}

/// [`wrapped`] of argument `i`.
pub fn dim(call: &Call, i: usize, ndim: usize) -> Result<usize, Error> {
    Ok(wrapped(call.int(i)?, ndim))
}
