//! The types of an oracle and of its answer.

use super::args::Inputs;
use crate::array::Array;

/// Computes an op's expected results for these inputs, one array for each output.
pub type Oracle = fn(&Inputs) -> Result<Vec<Array>, Unknown>;

/// The oracle has no expected value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the oracle cannot judge this: {0}")]
pub struct Unknown(pub String);

/// The ops of a family: name and oracle.
pub type Family = &'static [(&'static str, Oracle)];
