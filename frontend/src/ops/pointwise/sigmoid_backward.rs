//! `sigmoid_backward`

use super::backward;
use super::derived;
use crate::Tensor;
use crate::ops::def::{Derivative, OpDef};
use crate::ops::forms;
use crate::ops::sample::Fill;

forms! {
    /// The gradient through [`Tensor::sigmoid`], from the gradient `self` and its `output`: `self * (1 - output) * output`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let grad = Tensor::new([3.0f32, 3.0])?;
    /// let output = Tensor::new([0.5f32, 1.0])?;
    /// assert_eq!(grad.sigmoid_backward(&output)?.to_vec::<f32>()?, [0.75, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast.
    pub fn sigmoid_backward(&self, output: &Tensor);
}

/// `sigmoid_backward`
pub static DEF: OpDef = backward::def(
    "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
    Derivative::of_inputs(0b11, |b, g| {
        g.set(0, || b.grad(0)?.sigmoid_backward(&b.input(1)?))?;
        g.set(1, || b.grad(0)?.mul(&b.input(0)?)?.mul(&b.input(1)?.mul(-2)?.add(1)?))
    }),
    || backward::samples(&Fill::Uniform(0.1, 0.9)),
)
.decomposed(derived::SIGMOID_BACKWARD);
