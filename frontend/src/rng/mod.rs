//! Random numbers with one definition, so that every backend gives the same numbers for the same seed.

pub mod generator;

pub use generator::{Generator, GeneratorState, default_generator, initial_seed, manual_seed, using};
pub(crate) use generator::{held, using_some};
pub use keyway_sdk::philox;
pub use philox::Philox;
