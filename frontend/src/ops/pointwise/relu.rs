//! `relu`

use crate::DType;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use crate::ops::sample::{Fill, error, fixed};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// The larger of 0 and each element; NaN stays.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[-1.0f32, 2.0])?.relu()?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype of bool.
    pub fn relu(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::relu`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn relu_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }
}

/// `relu`
pub static DEF: OpDef = OpDef {
    schema: "relu(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_number),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0,
        saves_outputs: 0b1,
        formula: |b, g| g.set(0, || b.grad(0)?.relu_backward(&b.output(0)?)),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::NUMERIC,
    samples: || sample::unary_of(&Fill::AwayFrom(-2.2, 2.2, 0.05), &[]),
    errors: || vec![error([fixed(&[2], DType::BOOL, Fill::Values(vec![0.0, 1.0]))], "a number dtype")],
    entry: Entry::new(),
}
.with(Facts::EXACT);
