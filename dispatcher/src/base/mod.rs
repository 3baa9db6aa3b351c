//! Base types of all modules: names, shapes, dtypes, keys, errors, the log, threads.

pub mod dims;
pub mod dtype;
pub mod error;
pub mod fork;
mod guard;
pub mod intern;
pub mod key;
pub mod lacking;
pub(crate) mod layout_value;
pub mod log;
pub mod lossy;
pub(crate) mod message;
pub mod parallel;
pub mod plugin;
pub mod progress;
pub mod scratch_count;
pub mod settings;
