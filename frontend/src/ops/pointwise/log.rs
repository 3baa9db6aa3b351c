//! `log`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// The natural logarithm of each element; minus infinity at 0, NaN below. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1.0f32, 0.0])?.log()?.to_vec::<f32>()?, [0.0, f32::NEG_INFINITY]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn log(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::log`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn log_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::log`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn log_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `log`
pub static DEF: OpDef = OpDef {
    schema: "log(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_float),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0,
        formula: |b, g| g.set(0, || b.grad(0)?.mul(&b.input(0)?.reciprocal()?)),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples: || sample::unary(0.3, 3.0),
    errors: Vec::new,
    entry: Entry::new(),
};
