//! Judges a backend, case by case, by an oracle that shares nothing with it.
#![forbid(unsafe_code)]

pub mod array;
pub mod export;
pub mod extremes;
pub mod inputs;
pub mod oracle;
