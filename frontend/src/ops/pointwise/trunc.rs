//! `trunc`

use crate::DType;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use crate::ops::sample::{Fill, error, fixed};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// Each element without its fraction.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1.5f32, -1.5])?.trunc()?.to_vec::<f32>()?, [1.0, -1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype of bool.
    pub fn trunc(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::trunc`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn trunc_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::trunc`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn trunc_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `trunc`
pub static DEF: OpDef = OpDef {
    schema: "trunc(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_number),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0,
        saves_outputs: 0,
        formula: |b, g| g.set(0, || b.grad(0)?.zeros_like()),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::NUMERIC,
    samples: || sample::unary_of(&Fill::AwayFrom(-2.2, 2.2, 0.05), &[]),
    errors: || vec![error([fixed(&[2], DType::BOOL, Fill::Values(vec![0.0, 1.0]))], "a number dtype")],
    entry: Entry::new(),
}
.with(Facts::EXACT.and(Facts::SIGNED_ZEROS));
