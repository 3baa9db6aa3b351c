//! `asinh`

use super::asin::length_from_one;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules, sample};

forms! {
    /// The inverse hyperbolic sine of each element. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32])?.asinh()?.to_vec::<f32>()?, [0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    #[doc(alias = "arcsinh")]
    pub fn asinh(&self), in_place: asinh_, out: asinh_out;
}

/// `asinh`
pub static DEF: OpDef = OpDef::unary(
    "asinh(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.div(&length_from_one(&b.input(0)?)?))),
)
.samples(|| sample::unary(-3.0, 3.0))
.with(OpFlags::ZERO_PRESERVING)
.with(OpFlags::HOLOMORPHIC);
