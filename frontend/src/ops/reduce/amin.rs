//! `amin`

use super::extremum;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use keyway_dispatcher::op::{Arg, Rule};

impl Tensor {
    /// The smallest element; NaN if there is one. Ties share the gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1i32, 3])?.amin()?.item::<i32>()?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor without elements.
    pub fn amin(&self) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::None, Arg::Bool(false)])
    }

    /// The smallest elements over `dims`, which stay as size 1 if `keepdim`. No dims means all.
    ///
    /// # Errors
    /// A dimension out of range or given twice, or one of size 0.
    pub fn amin_dims(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(dims), Arg::Bool(keepdim)])
    }
}

/// `amin`
pub static DEF: OpDef = OpDef {
    schema: "amin(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    rule: Rule::Structured(extremum::rule),
    decomposition: None,
    derivative: Derivative::Formula { saves: 0b1, saves_outputs: 0b1, formula: extremum::to_ties },
    forms: Forms::Out,
    dtypes: Dtypes::ALL,
    samples: extremum::samples,
    errors: extremum::errors,
    entry: Entry::new(),
}
.with(Facts::EXACT);
