//! Names of dimensions that users of candle type by habit; each has a deprecation note with the spelling used here.

use super::shape::Int;
use keyway_dispatcher::op::Arg;

/// candle's dimensions counted from the end.
#[doc(hidden)]
#[deprecated(note = "dimensions are signed numbers: `-1` is the last, `-2` the one before")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum D {
    /// The last dimension.
    Minus1,
    /// The one before the last.
    Minus2,
}

#[allow(deprecated)]
impl From<D> for Arg<'static> {
    fn from(dim: D) -> Arg<'static> {
        Arg::Int(dim.to_i64())
    }
}

#[allow(deprecated)]
impl Int for D {
    fn to_i64(self) -> i64 {
        match self {
            D::Minus1 => -1,
            D::Minus2 => -2,
        }
    }
}
