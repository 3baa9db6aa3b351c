//! Under construction.
pub mod loader;
