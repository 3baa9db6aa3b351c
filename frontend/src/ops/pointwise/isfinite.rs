//! `isfinite`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// Whether each element is neither infinite nor NaN. Always true of an integer.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_slice(&[1.0f32, f32::INFINITY])?;
    /// assert_eq!(a.isfinite()?.to_vec::<bool>()?, [true, false]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn isfinite(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }
}

/// `isfinite`
pub static DEF: OpDef = OpDef {
    schema: "isfinite(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::predicate),
    decomposition: None,
    derivative: Derivative::NotDifferentiable,
    forms: Forms::New,
    dtypes: Dtypes::ALL,
    samples: || sample::unary(-2.0, 2.0),
    errors: Vec::new,
    entry: Entry::new(),
};
