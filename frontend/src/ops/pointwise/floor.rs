//! `floor`

use super::rounding;
use crate::ops::def::{OpDef, OpFlags};
use crate::ops::forms;

forms! {
    /// The largest integer that is not above each element.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1.5f32, -1.5])?.floor()?.to_vec::<f32>()?, [1.0, -2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype of bool.
    pub fn floor(&self), in_place: floor_, out: floor_out;
}

/// `floor`
pub static DEF: OpDef = rounding::def("floor(Tensor self) -> Tensor").with(OpFlags::ZERO_PRESERVING);
