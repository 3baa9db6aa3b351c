//! Safe types over the contract, for people who write plugins.

mod contents;
mod error;
#[doc(hidden)]
pub mod export;
mod guard;

pub use contents::Contents;
pub use error::Error;
