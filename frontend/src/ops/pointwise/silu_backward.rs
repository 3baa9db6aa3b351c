//! `silu_backward`

use super::backward;
use super::derived;
use crate::Tensor;
use crate::ops::def::{Derivative, OpDef};
use crate::ops::forms;
use crate::ops::sample::Fill;

forms! {
    /// The input gradient of [`Tensor::silu`], from the output gradient `self` and the `input`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let grad = Tensor::new([3.0f32, 3.0])?;
    /// let input = Tensor::new([0.0f32, 100.0])?;
    /// assert_eq!(grad.silu_backward(&input)?.to_vec::<f32>()?, [1.5, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast.
    pub fn silu_backward(&self, input: &Tensor);
}

/// `silu_backward`
pub static DEF: OpDef = backward::def(
    "silu_backward(Tensor grad_output, Tensor input) -> Tensor",
    Derivative::of_inputs(0b11, |b, g| {
        g.set(0, || b.grad(0)?.silu_backward(&b.input(1)?))?;
        g.set(1, || {
            let x = b.input(1)?;
            // The derivative of the sigmoid, times `2 + x (sigmoid(-x) - sigmoid(x))`.
            let bend = x.mul(-0.5)?.tanh()?.mul(&x)?.add(2)?;
            b.grad(0)?.mul(&b.input(0)?)?.sigmoid_backward(&x)?.mul(&bend)
        })
    }),
    || backward::samples(&Fill::Uniform(-3.0, 3.0)),
)
.decomposed(derived::SILU_BACKWARD);
