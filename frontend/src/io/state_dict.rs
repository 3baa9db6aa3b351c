//! Tensors of a file by name.

use crate::Tensor;
use std::collections::BTreeMap;

/// Tensors by name, sorted. [`io::safetensors`](crate::io::safetensors) saves and loads it.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::{self, Module, StateDict};
/// let layer = nn::Linear::new(4, 3)?;
/// let state: StateDict = layer.state_dict();
/// assert_eq!(state.keys().collect::<Vec<_>>(), ["bias", "weight"]);
/// assert_eq!(state["weight"].shape(), [3, 4]);
/// # Ok(()) }
/// ```
#[doc(alias = "VarMap")]
pub type StateDict = BTreeMap<String, Tensor>;
