//! Flattening of dimensions.

use super::Module;
use crate::error::called;
use crate::{Result, Tensor};
use keyway_dispatcher::dims::wrap_dim;

/// Flattens the dimensions from `start` to `end`, inclusive; -1 is the last.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Flatten, Module}};
/// let images = Tensor::from_vec(vec![0.0f32; 2 * 3 * 4 * 4], (2, 3, 4, 4))?;
/// assert_eq!(Flatten::default().forward(&images)?.shape(), [2, 48]);
/// assert_eq!(Flatten { start: 2, end: -1 }.forward(&images)?.shape(), [2, 3, 16]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Flatten {
    /// The first dimension.
    pub start: i64,
    /// The last dimension.
    pub end: i64,
}

impl Default for Flatten {
    /// Flattens all dimensions but the first, the batch.
    fn default() -> Flatten {
        Flatten { start: 1, end: -1 }
    }
}

impl Module for Flatten {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let sizes = input.shape();
        let (start, end) =
            (wrap_dim("Flatten", self.start, sizes.len())?, wrap_dim("Flatten", self.end, sizes.len())?);
        if start > end {
            return Err(super::ModuleError::Option {
                owner: "Flatten",
                option: "start",
                expected: "a dimension not after `end`",
                got: format!("start {} and end {} for shape {sizes:?}", self.start, self.end),
            }
            .into());
        }
        called("Flatten", &["start", "end"], || input.flatten(self.start, self.end))
    }
}
