//! `logical_not`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// Whether each element is 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1.5f32, 0.0])?.logical_not()?.to_vec::<bool>()?, [false, true]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn logical_not(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::logical_not`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn logical_not_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::logical_not`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn logical_not_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `logical_not`
pub static DEF: OpDef = OpDef {
    schema: "logical_not(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::predicate),
    decomposition: None,
    derivative: Derivative::NotDifferentiable,
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples: || sample::unary(-2.0, 2.0),
    errors: Vec::new,
    entry: Entry::new(),
};
