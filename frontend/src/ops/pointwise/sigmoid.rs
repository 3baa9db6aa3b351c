//! `sigmoid`

use super::derived;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules, sample};

forms! {
    /// The logistic function, `1 / (1 + e^-x)`, of each element. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32, 100.0])?.sigmoid()?.to_vec::<f32>()?, [0.5, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    #[doc(alias = "expit")]
    pub fn sigmoid(&self), in_place: sigmoid_, out: sigmoid_out;
}

/// `sigmoid`
pub static DEF: OpDef = OpDef::unary(
    "sigmoid(Tensor self) -> Tensor",
    rules::unary_float,
    // From the input: an output rounded to 1 would give a gradient of 0.
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.sigmoid_backward(&b.input(0)?))),
)
.samples(|| sample::unary(-3.0, 3.0))
.decomposed(derived::SIGMOID)
.with(OpFlags::HOLOMORPHIC);
