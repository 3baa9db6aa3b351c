//! `silu_backward`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{Fill, Sample, broadcast_errors, plain, sample, tensor};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// The gradient through [`Tensor::silu`], from the gradient `self` and its `input`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let grad = Tensor::from_slice(&[3.0f32, 3.0])?;
    /// let input = Tensor::from_slice(&[0.0f32, 100.0])?;
    /// assert_eq!(grad.silu_backward(&input)?.to_vec::<f32>()?, [1.5, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast.
    pub fn silu_backward(&self, input: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), input.into()])
    }
}

fn samples() -> Vec<Sample> {
    let shapes: [&[usize]; 6] = [&[], &[7], &[0, 3], &[2, 3, 4], &[2, 3, 2, 2], &[2, 1, 2, 3, 2]];
    shapes.iter().map(|s| sample([plain(s), tensor(s, Fill::Uniform(-3.0, 3.0))])).collect()
}

/// `silu_backward`
pub static DEF: OpDef = OpDef {
    schema: "silu_backward(Tensor grad_output, Tensor input) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST_TWO, rules::binary_float),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b11,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || b.grad(0)?.silu_backward(&b.input(1)?))?;
            g.set(1, || {
                let x = b.input(1)?;
                let s = x.sigmoid()?;
                let rest = s.neg()?.add(1)?;
                let curve = rest.mul(&s)?.mul(&rest.add_scaled(&s, -1)?.mul(&x)?.add(2)?)?;
                b.grad(0)?.mul(&b.input(0)?)?.mul(&curve)
            })
        },
    },
    forms: Forms::New,
    dtypes: Dtypes::FLOAT,
    samples,
    errors: || broadcast_errors(&[]),
    entry: Entry::new(),
};
