//! `sigmoid_backward`

use super::backward;
use super::derived;
use crate::Tensor;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::forms;
use crate::ops::sample::Fill;

forms! {
    /// The input gradient of [`Tensor::sigmoid`], from the output gradient `self` and the `input`:
    /// `self * sigmoid(x) * sigmoid(-x)` of each element `x`. The output may be rounded to 1, so the gradient cannot be
    /// computed from it far from 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let grad = Tensor::new([3.0f32, 3.0])?;
    /// let input = Tensor::new([0.0f32, 200.0])?;
    /// assert_eq!(grad.sigmoid_backward(&input)?.to_vec::<f32>()?, [0.75, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast.
    pub fn sigmoid_backward(&self, input: &Tensor);
}

/// `sigmoid_backward`
pub static DEF: OpDef = backward::def(
    "sigmoid_backward(Tensor grad_output, Tensor input) -> Tensor",
    Derivative::of_inputs(0b11, |b, g| {
        g.set(0, || b.grad(0)?.sigmoid_backward(&b.input(1)?))?;
        // The first derivative times `sigmoid(-x) - sigmoid(x)`, as a hyperbolic tangent, which is accurate near 0.
        g.set(1, || {
            let x = b.input(1)?;
            let both = b.grad(0)?.mul(&b.input(0)?)?;
            both.sigmoid_backward(&x)?.mul(&x.mul(-0.5)?.tanh()?)
        })
    }),
    || backward::samples(&Fill::Uniform(-3.0, 3.0)),
)
.decomposed(derived::SIGMOID_BACKWARD)
.with(OpFlags::HOLOMORPHIC);
