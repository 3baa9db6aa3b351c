//! `sigmoid`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// The logistic function, `1 / (1 + e^-x)`, of each element. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[0.0f32, 100.0])?.sigmoid()?.to_vec::<f32>()?, [0.5, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn sigmoid(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::sigmoid`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn sigmoid_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::sigmoid`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn sigmoid_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `sigmoid`
pub static DEF: OpDef = OpDef {
    schema: "sigmoid(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_float),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0,
        saves_outputs: 0b1,
        formula: |b, g| g.set(0, || b.grad(0)?.sigmoid_backward(&b.output(0)?)),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples: || sample::unary(-3.0, 3.0),
    errors: Vec::new,
    entry: Entry::new(),
};
