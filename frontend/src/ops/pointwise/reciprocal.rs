//! `reciprocal`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// 1 over each element; infinite at 0. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[4.0f32, -2.0])?.reciprocal()?.to_vec::<f32>()?, [0.25, -0.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn reciprocal(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::reciprocal`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn reciprocal_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::reciprocal`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn reciprocal_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `reciprocal`
pub static DEF: OpDef = OpDef {
    schema: "reciprocal(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_float),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0,
        saves_outputs: 0b1,
        formula: |b, g| g.set(0, || b.grad(0)?.mul(&b.output(0)?.square()?.neg()?)),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples: || sample::unary(0.5, 3.0),
    errors: Vec::new,
    entry: Entry::new(),
}
.with(Facts::SIGNED_ZEROS);
