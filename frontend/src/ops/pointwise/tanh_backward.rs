//! `tanh_backward`

use super::backward;
use super::derived;
use crate::Tensor;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::forms;
use crate::ops::sample::Fill;

forms! {
    /// The input gradient of [`Tensor::tanh`], from the output gradient `self` and the `input`: `self / cosh(x)^2` of each
    /// element `x`. The output may be rounded to 1, so the gradient cannot be computed from it far from 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let grad = Tensor::new([3.0f32, 3.0])?;
    /// let input = Tensor::new([0.0f32, 100.0])?;
    /// assert_eq!(grad.tanh_backward(&input)?.to_vec::<f32>()?, [3.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast.
    pub fn tanh_backward(&self, input: &Tensor);
}

/// `tanh_backward`
pub static DEF: OpDef = backward::def(
    "tanh_backward(Tensor grad_output, Tensor input) -> Tensor",
    Derivative::of_inputs(0b11, |b, g| {
        g.set(0, || b.grad(0)?.tanh_backward(&b.input(1)?))?;
        g.set(1, || {
            let x = b.input(1)?;
            let both = b.grad(0)?.mul(&b.input(0)?)?;
            both.tanh_backward(&x)?.mul(&x.tanh()?)?.mul(-2)
        })
    }),
    || backward::samples(&Fill::Uniform(-3.0, 3.0)),
)
.decomposed(derived::TANH_BACKWARD)
.with(OpFlags::HOLOMORPHIC);
