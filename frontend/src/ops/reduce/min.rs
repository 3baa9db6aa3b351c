//! `min`

use super::extremum;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use keyway_dispatcher::op::{Arg, Rule};

impl Tensor {
    /// The smallest elements along `dim`, which stays as size 1 if `keepdim`, and their places: the first of
    /// equals; NaN wins. Only the element at that place gets the gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (value, place) = Tensor::from_slice(&[1.0f32, 3.0])?.min(0, false)?;
    /// assert_eq!((value.item::<f32>()?, place.item::<i64>()?), (1.0, 0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or of size 0; bool.
    pub fn min(&self, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
        DEF.run_two(&[self.into(), Arg::Int(dim), Arg::Bool(keepdim)])
    }
}

/// `min`
pub static DEF: OpDef = OpDef {
    schema: "min(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)",
    rule: Rule::Structured(extremum::rule_along),
    decomposition: None,
    derivative: Derivative::Formula { saves: 0, saves_outputs: 0b10, formula: extremum::to_place },
    forms: Forms::New,
    dtypes: Dtypes::NUMERIC,
    samples: extremum::samples_along,
    errors: extremum::errors_along,
    entry: Entry::new(),
}
.with(Facts::EXACT);
