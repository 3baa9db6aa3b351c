//! `relu_backward`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{Fill, Sample, broadcast_errors, plain, sample, tensor};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// The gradient through [`Tensor::relu`]: `self` where its `output` is above 0, else 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let grad = Tensor::from_slice(&[3.0f32, 3.0])?;
    /// let output = Tensor::from_slice(&[0.0f32, 2.0])?;
    /// assert_eq!(grad.relu_backward(&output)?.to_vec::<f32>()?, [0.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast.
    pub fn relu_backward(&self, output: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), output.into()])
    }
}

fn samples() -> Vec<Sample> {
    let shapes: [&[usize]; 6] = [&[], &[7], &[0, 3], &[2, 3, 4], &[2, 3, 2, 2], &[2, 1, 2, 3, 2]];
    shapes.iter().map(|s| sample([plain(s), tensor(s, Fill::AwayFrom(-2.2, 2.2, 0.05))])).collect()
}

/// `relu_backward`
pub static DEF: OpDef = OpDef {
    schema: "relu_backward(Tensor grad_output, Tensor output) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST_TWO, rules::binary_float),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b10,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || b.grad(0)?.relu_backward(&b.input(1)?))?;
            g.set(1, || b.grad(0)?.zeros_like())
        },
    },
    forms: Forms::New,
    dtypes: Dtypes::FLOAT,
    samples,
    errors: || broadcast_errors(&[]),
    entry: Entry::new(),
};
