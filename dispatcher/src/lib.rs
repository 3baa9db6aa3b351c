//! The dispatch table, the plugin loader and tensor storage of Keyway.
//!
//! This crate knows how a call finds who serves it; it names no op. Ops are defined above and registered
//! as [`op::OpSpec`]s; kernels come from plugins.
//!
//! Decisions:
//! - a call reads one immutable generation of the table and never locks; registering publishes the next
//!   generation with one atomic store;
//! - arguments are borrowed and results small vectors, so a call of up to 8 tensors of up to 8 dimensions
//!   takes no heap beyond the result itself;
//! - the functional, `out=` and in-place forms of an op are one kernel and one rule;
//! - what may grow is open: devices, layouts, dtypes are interned names, functionality keys are numbers.

pub mod abi;
pub mod call;
pub mod conversions;
pub mod dims;
pub mod dtype;
pub mod error;
pub mod explain;
pub mod fallback;
mod geometry;
pub mod install;
pub mod intern;
pub mod key;
pub mod layouts;
pub mod ledger;
pub mod loader;
pub mod log;
pub mod memory;
pub mod op;
pub mod parallel;
pub mod registry;
pub mod schema;
pub mod table;
pub mod tensor;

pub use dims::Dims;
pub use dtype::DType;
pub use error::{Error, Result};
pub use key::{Device, Layout};
