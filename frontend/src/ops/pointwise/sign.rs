//! `sign`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use crate::ops::sample::Fill;
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// -1, 0 or 1 by the sign of each element; 0 for NaN.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[3.0f32, 0.0, -2.0])?.sign()?.to_vec::<f32>()?, [1.0, 0.0, -1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn sign(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::sign`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn sign_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::sign`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn sign_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `sign`
pub static DEF: OpDef = OpDef {
    schema: "sign(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0,
        saves_outputs: 0,
        formula: |b, g| g.set(0, || b.grad(0)?.zeros_like()),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples: || sample::unary_of(&Fill::AwayFrom(-2.2, 2.2, 0.05), &[]),
    errors: Vec::new,
    entry: Entry::new(),
}
.with(Facts::EXACT);
