//! `tanh`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// The hyperbolic tangent of each element. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[0.0f32, 100.0])?.tanh()?.to_vec::<f32>()?, [0.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn tanh(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::tanh`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn tanh_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::tanh`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn tanh_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `tanh`
pub static DEF: OpDef = OpDef {
    schema: "tanh(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_float),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0,
        saves_outputs: 0b1,
        formula: |b, g| g.set(0, || b.grad(0)?.tanh_backward(&b.output(0)?)),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples: || sample::unary(-2.0, 2.0),
    errors: Vec::new,
    entry: Entry::new(),
};
