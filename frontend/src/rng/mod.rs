//! Random numbers with one definition, so that every backend gives the same numbers for the same seed.

pub mod philox;

pub use philox::Philox;
