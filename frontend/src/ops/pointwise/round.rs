//! `round`

use crate::DType;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use crate::ops::sample::{Fill, error, fixed};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// The integer nearest to each element; of two as near, the even one.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1.5f32, -1.5])?.round()?.to_vec::<f32>()?, [2.0, -2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype of bool.
    pub fn round(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::round`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn round_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::round`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn round_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `round`
pub static DEF: OpDef = OpDef {
    schema: "round(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_number),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0,
        saves_outputs: 0,
        formula: |b, g| g.set(0, || b.grad(0)?.zeros_like()),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::NUMERIC,
    samples: || sample::unary_of(&Fill::Uniform(0.6, 1.4), &[]),
    errors: || vec![error([fixed(&[2], DType::BOOL, Fill::Values(vec![0.0, 1.0]))], "a number dtype")],
    entry: Entry::new(),
}
.with(Facts::EXACT.and(Facts::SIGNED_ZEROS));
