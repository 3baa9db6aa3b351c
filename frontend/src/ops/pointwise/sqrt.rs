//! `sqrt`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// The square root of each element; NaN below 0. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[4.0f32, 9.0])?.sqrt()?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn sqrt(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::sqrt`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn sqrt_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::sqrt`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn sqrt_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `sqrt`
pub static DEF: OpDef = OpDef {
    schema: "sqrt(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_float),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0,
        saves_outputs: 0b1,
        formula: |b, g| g.set(0, || b.grad(0)?.mul(&b.output(0)?.reciprocal()?)?.mul(0.5)),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples: || sample::unary(0.3, 3.0),
    errors: Vec::new,
    entry: Entry::new(),
}
.with(Facts::SIGNED_ZEROS);
