//! Guides for users of other libraries: their names and the names here.
//!
//! The tables are written by `frontend-tests/tests/from_other_libraries`, which compiles and runs every row.

#[doc = include_str!("from_candle.md")]
pub mod from_candle {}

#[doc = include_str!("from_pytorch.md")]
pub mod from_pytorch {}
