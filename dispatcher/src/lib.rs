//! The dispatch table, the plugin loader and tensor storage of Keyway.
//!
//! This crate dispatches calls to kernels; it names no op. Ops are defined in the layer above and registered as
//! [`op::OpSpec`]s; kernels are registered by plugins.
//!
//! Decisions:
//! - a call reads one immutable generation of the table without a lock; registration publishes the next generation with one
//!   atomic store;
//! - arguments are borrowed and results are small vectors, so a call of up to 8 tensors of up to 8 dimensions makes no heap
//!   allocation except for the result;
//! - the functional, `out=` and in-place forms of an op are one kernel and one rule;
//! - open sets are extensible at run time: devices, layouts and dtypes are interned names, dispatch keys are numbers.

mod base;
pub mod call;
pub mod device;
pub mod host;
pub mod loader;
pub mod memory;
pub mod op;
pub mod registry;
pub mod tensor;

pub use base::{
    dims, dtype, error, fork, intern, key, lacking, log, lossy, parallel, plugin, progress, scratch_count,
    settings,
};
pub use call::{explain, fallback, layouts, ledger};
pub use host::install;
pub use op::schema;
pub use registry::table;

pub use dims::Dims;
pub use dtype::DType;
pub use error::{Error, Result};
pub use key::{Device, Layout};

/// The folder of this crate's sources in backtraces, so that layers above can filter its frames.
pub const SOURCES: &str = {
    let file = file!();
    // `lib.rs` is the last component of the path.
    file.split_at(file.len() - "lib.rs".len()).0
};
