//! `hardswish_backward`

use super::backward;
use super::derived;
use crate::Tensor;
use crate::ops::def::{Derivative, OpDef};
use crate::ops::forms;
use crate::ops::sample::{Fill, Sample, sample, tensor};

forms! {
    /// The input gradient of [`Tensor::hardswish`], from the output gradient `self` and the `input`: 0 up to -3, and `self`
    /// from 3 on.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let grad = Tensor::new([3.0f32, 3.0, 3.0])?;
    /// let input = Tensor::new([-3.0f32, 0.0, 3.0])?;
    /// assert_eq!(grad.hardswish_backward(&input)?.to_vec::<f32>()?, [0.0, 1.5, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast.
    pub fn hardswish_backward(&self, input: &Tensor);
}

fn samples() -> Vec<Sample> {
    let corners = tensor(&[5], Fill::Values(vec![-3.0, 3.0, 0.0, -4.0, 4.0]));
    let mut samples = backward::samples(&Fill::AwayFrom(-4.2, 4.2, 0.05));
    samples.push(Sample { smooth: false, ..sample([tensor(&[5], Fill::Values(vec![2.0, -3.0])), corners]) });
    samples
}

/// `hardswish_backward`
pub static DEF: OpDef = backward::def(
    "hardswish_backward(Tensor grad_output, Tensor input) -> Tensor",
    Derivative::of_inputs(0b11, |b, g| {
        g.set(0, || b.grad(0)?.hardswish_backward(&b.input(1)?))?;
        g.set(1, || {
            let x = b.input(1)?;
            let bend = b.grad(0)?.mul(&b.input(0)?)?.mul(1.0 / 3.0)?;
            x.ge(3)?.logical_or(&x.le(-3)?)?.where_cond(0, &bend)
        })
    }),
    samples,
)
.decomposed(derived::HARDSWISH_BACKWARD);
