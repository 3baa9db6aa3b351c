//! `expm1`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// `e` to the power of each element, less 1, exact for small elements too. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[0.0f64, 1e-20])?.expm1()?.to_vec::<f64>()?, [0.0, 1e-20]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn expm1(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::expm1`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn expm1_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::expm1`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn expm1_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `expm1`
pub static DEF: OpDef = OpDef {
    schema: "expm1(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_float),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0,
        saves_outputs: 0b1,
        formula: |b, g| g.set(0, || b.grad(0)?.mul(&b.output(0)?.add(1)?)),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples: || sample::unary(-2.0, 2.0),
    errors: Vec::new,
    entry: Entry::new(),
};
