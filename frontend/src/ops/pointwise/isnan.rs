//! `isnan`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// Whether each element is not a number. Never true of an integer.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1.0f32, f32::NAN])?.isnan()?.to_vec::<bool>()?, [false, true]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn isnan(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }
}

/// `isnan`
pub static DEF: OpDef = OpDef {
    schema: "isnan(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::predicate),
    decomposition: None,
    derivative: Derivative::NotDifferentiable,
    forms: Forms::New,
    dtypes: Dtypes::ALL,
    samples: || sample::unary(-2.0, 2.0),
    errors: Vec::new,
    entry: Entry::new(),
};
