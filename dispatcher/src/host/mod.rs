//! The host's side of the contract: the services that plugins call back, and what becomes of what they bring.

mod cache;
pub mod install;
mod interposer;
mod ops;
pub mod probe;
mod rules;
mod services;

pub use crate::base::message::take_message;
pub use services::table;
