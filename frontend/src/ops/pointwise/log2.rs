//! `log2`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// The logarithm to base 2 of each element; minus infinity at 0, NaN below. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[8.0f32, 0.5])?.log2()?.to_vec::<f32>()?, [3.0, -1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn log2(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::log2`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn log2_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::log2`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn log2_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `log2`
pub static DEF: OpDef = OpDef {
    schema: "log2(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_float),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || b.grad(0)?.mul(&b.input(0)?.reciprocal()?)?.mul(std::f64::consts::LOG2_E))
        },
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples: || sample::unary(0.3, 3.0),
    errors: Vec::new,
    entry: Entry::new(),
};
