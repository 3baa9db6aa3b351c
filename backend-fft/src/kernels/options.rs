//! The options of a transform.

use crate::number::Number;
use keyway_sdk::author::{Call, Error};

/// The dimensions in argument `index`, counted from 0.
///
/// # Errors
/// A dimension out of range.
pub fn dims(call: &Call<'_>, index: usize, ndim: usize) -> Result<Vec<usize>, Error> {
    let wrapped = |&dim: &i64| {
        let at = if dim < 0 { dim + ndim as i64 } else { dim };
        usize::try_from(at).ok().filter(|&at| at < ndim).ok_or_else(|| Error::InvalidArgument {
            argument: "dim",
            expected: format!("dimensions of a tensor of {ndim} dimensions"),
            got: dim.to_string(),
        })
    };
    call.ints(index)?.iter().map(wrapped).collect()
}

/// The factor of a transform of `count` elements by the normalization in argument `index`.
///
/// # Errors
/// A name that is none.
pub fn scale<T: Number>(call: &Call<'_>, index: usize, forward: bool, count: usize) -> Result<T, Error> {
    let count = count as f64;
    Ok(T::nearest(match (call.str(index)?, forward) {
        ("backward", true) | ("forward", false) => 1.0,
        ("backward", false) | ("forward", true) => 1.0 / count,
        ("ortho", _) => 1.0 / count.sqrt(),
        (other, _) => {
            return Err(Error::InvalidArgument {
                argument: "norm",
                expected: "\"backward\", \"ortho\" or \"forward\"".into(),
                got: other.into(),
            });
        }
    }))
}
