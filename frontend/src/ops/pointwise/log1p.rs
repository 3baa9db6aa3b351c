//! `log1p`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// The natural logarithm of 1 plus each element, exact for small elements too. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[0.0f64, 1e-20])?.log1p()?.to_vec::<f64>()?, [0.0, 1e-20]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn log1p(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::log1p`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn log1p_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::log1p`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn log1p_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `log1p`
pub static DEF: OpDef = OpDef {
    schema: "log1p(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_float),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0,
        formula: |b, g| g.set(0, || b.grad(0)?.mul(&b.input(0)?.add(1)?.reciprocal()?)),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples: || sample::unary(-0.7, 3.0),
    errors: Vec::new,
    entry: Entry::new(),
};
