//! Element-wise loops over strided host memory, SIMD vectors and image geometry, for Keyway plugins whose kernels run on
//! the CPU.
//!
//! A kernel is one line:
//!
//! ```
//! use keyway_cpu_loops::prelude::*;
//! use keyway_sdk::author::{Call, Error};
//!
//! fn exp(call: &Call<'_>) -> Result<(), Error> {
//!     call.map1(Cost::Heavy, |x: f32| x.exp())
//! }
//! ```
//!
//! [`CallExt`] adds `map0` to `map3`, `map1_wide` to `map3_wide` for narrow floats, `contiguous` and `contiguous_out`
//! to the SDK's `Call`, [`ViewExt`] adds `contiguous` to its `View`, and the functions [`map0`] to [`map3`],
//! [`map1_slices`] and [`map2_slices`] accept any views. The host passes the inputs already broadcast to the output's shape
//! (stride 0 where expanded); an input of one element is broadcast to any shape; the output may be exactly one of the
//! inputs.
//!
//! Decisions:
//! - a separate crate from `keyway-sdk`: a plugin for a device whose memory the host cannot read has no use for these
//!   loops and does not compile them; it iterates with [`keyway_sdk::author::strided`];
//! - `contiguous` and `contiguous_out` are here and not in the SDK, although they are not loops: each copies if strides or
//!   an in-place call require it, and a copy of strided memory is one of the loops of this crate. A second, slower copy in
//!   the SDK was rejected, since a call would not show which of the two it uses;
//! - extension traits, so that kernels call methods of the SDK and of this crate alike;
//! - only one loop over contiguous elements is compiled per function; the strided iteration, and the copies of operands
//!   into small dense blocks, are code that all functions share;
//! - dimensions are collapsed and sorted by the output's strides, so that a dense tensor of any memory format is one loop;
//! - the loop bodies are plain Rust that the compiler vectorises for the SIMD level of the build; there is no run-time
//!   feature detection except for the tile unit ([`tiles`]), which no level includes.

mod blocks;
mod contiguous;
mod cost;
mod dense;
mod elementwise;
mod fast_path;
pub mod images;
mod inner_loop;
mod lists;
mod narrow;
mod operand;
mod order;
mod pack;
mod stream;
mod tasks;
pub mod tiles;
mod transpose;
pub mod vectors;

pub use contiguous::{Contiguous, ContiguousOut, ViewExt};
pub use cost::Cost;
pub use dense::copy_dense;
pub use elementwise::{CallExt, map0, map1, map1_slices, map2, map2_slices, map3};
pub use inner_loop::Function;
pub use lists::reserve;
pub use narrow::{Slices, narrow_slice, zip_wide};
pub use tasks::parallel_try;
pub use transpose::{transpose, widen_transposed};

/// The prelude of a kernel's file: the extension traits and [`Cost`].
pub mod prelude {
    pub use crate::{CallExt, Cost, ViewExt};
}

#[cfg(test)]
mod elementwise_tests;
#[cfg(test)]
mod wide_tests;
// The unit tests of the SDK and of this crate share this private file, which builds calls from plain vectors.
#[cfg(test)]
#[path = "../../src/author/testing.rs"]
mod testing;
