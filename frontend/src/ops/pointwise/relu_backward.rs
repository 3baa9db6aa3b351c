//! `relu_backward`

use super::backward;
use super::derived;
use crate::Tensor;
use crate::ops::def::{Derivative, OpDef};
use crate::ops::forms;
use crate::ops::sample::Fill;

forms! {
    /// The input gradient of [`Tensor::relu`]: `self` where the `output` is above 0, otherwise 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let grad = Tensor::new([3.0f32, 3.0])?;
    /// let output = Tensor::new([0.0f32, 2.0])?;
    /// assert_eq!(grad.relu_backward(&output)?.to_vec::<f32>()?, [0.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast.
    pub fn relu_backward(&self, output: &Tensor);
}

/// `relu_backward`
pub static DEF: OpDef = backward::def(
    "relu_backward(Tensor grad_output, Tensor output) -> Tensor",
    Derivative::of_inputs(0b10, |b, g| {
        g.set(0, || b.grad(0)?.relu_backward(&b.input(1)?))?;
        g.set(1, || b.grad(0)?.zeros_like())
    }),
    || backward::samples(&Fill::AwayFrom(-2.2, 2.2, 0.05)),
)
.decomposed(derived::RELU_BACKWARD);
