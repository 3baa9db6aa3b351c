//! The host's side of the contract: the services that plugins call, and the registration of plugins' contents.

mod boundary;
mod cache;
mod composite;
mod ending;
mod file_size;
mod fork;
pub mod install;
mod interposer;
mod ops;
pub mod probe;
mod rules;
mod services;
mod surroundings;
mod text;

pub use crate::base::message::take_message;
pub use ending::{Running, leave, running};
pub use file_size::{ignore_file_size_signal, without_file_size_signal};
pub use fork::keep_from_forks;
pub use services::table;
