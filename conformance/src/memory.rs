//! Tensors in memory that the suite arranges, checks and reads itself.

pub(crate) mod placed;

pub use placed::{Arrangement, Damage, GUARD, Placed, read_strided, repeated};

use crate::array::Array;
use crate::known_layouts;
use keyway::{Result, Tensor};

/// Reads the values of a tensor from its memory, without the backend. `None` for bytes that are not a valid element of the
/// dtype.
///
/// # Errors
/// Errors of the device; a layout that cannot be converted to strided.
pub fn read(tensor: &Tensor) -> Result<Option<Array>> {
    match known_layouts::find(tensor.layout()).filter(|_| !tensor.as_ref().is_strided()) {
        Some(known) => known_layouts::read(known, tensor),
        None => read_strided(tensor),
    }
}
