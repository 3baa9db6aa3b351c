//! `round`

use super::rounding;
use crate::ops::def::{OpDef, OpFlags};
use crate::ops::sample::Fill;
use crate::ops::{forms, sample};

forms! {
    /// The nearest integer of each element; ties go to the even one.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1.5f32, -1.5])?.round()?.to_vec::<f32>()?, [2.0, -2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype of bool.
    pub fn round(&self), in_place: round_, out: round_out;
}

/// `round`
pub static DEF: OpDef = rounding::def("round(Tensor self) -> Tensor")
    .samples(|| sample::unary_of(&Fill::Uniform(0.6, 1.4), &[]))
    .with(OpFlags::ZERO_PRESERVING);
