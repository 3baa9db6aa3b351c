//! `neg`

use crate::DType;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use crate::ops::sample::{Fill, error, fixed};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// The negative of each element. Unsigned integers wrap.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1.0f32, -2.0])?.neg()?.to_vec::<f32>()?, [-1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype of bool.
    pub fn neg(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::neg`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn neg_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::neg`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn neg_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `neg`
pub static DEF: OpDef = OpDef {
    schema: "neg(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_number),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0,
        saves_outputs: 0,
        formula: |b, g| g.set(0, || b.grad(0)?.neg()),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::NUMERIC,
    samples: || sample::unary(-2.0, 2.0),
    errors: || vec![error([fixed(&[2], DType::BOOL, Fill::Values(vec![0.0, 1.0]))], "a number dtype")],
    entry: Entry::new(),
}
.with(Facts::EXACT.and(Facts::SIGNED_ZEROS));
