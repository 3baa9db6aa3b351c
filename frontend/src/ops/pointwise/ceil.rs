//! `ceil`

use super::rounding;
use crate::ops::def::{OpDef, OpFlags};
use crate::ops::forms;

forms! {
    /// The smallest integer that is not below each element.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1.5f32, -1.5])?.ceil()?.to_vec::<f32>()?, [2.0, -1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype of bool.
    pub fn ceil(&self), in_place: ceil_, out: ceil_out;
}

/// `ceil`
pub static DEF: OpDef = rounding::def("ceil(Tensor self) -> Tensor").with(OpFlags::ZERO_PRESERVING);
