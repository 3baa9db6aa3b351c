//! Oracles of a family of ops.

use super::args::Inputs;
use super::unknown::Unknown;
use crate::array::Array;

/// Computes an op's expected results for these inputs, one array for each output.
pub type Oracle = fn(&Inputs) -> Result<Vec<Array>, Unknown>;

/// The ops of a family: name and oracle.
pub type Family = &'static [(&'static str, Oracle)];
