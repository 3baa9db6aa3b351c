//! `trunc`

use super::rounding;
use crate::ops::def::{OpDef, OpFlags};
use crate::ops::forms;

forms! {
    /// Each element rounded towards 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1.5f32, -1.5])?.trunc()?.to_vec::<f32>()?, [1.0, -1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype of bool.
    #[doc(alias = "fix")]
    pub fn trunc(&self), in_place: trunc_, out: trunc_out;
}

/// `trunc`
pub static DEF: OpDef = rounding::def("trunc(Tensor self) -> Tensor").with(OpFlags::ZERO_PRESERVING);
