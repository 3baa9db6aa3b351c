//! `ne`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{PAIRS, broadcast_errors, plain, sample};
use keyway_dispatcher::op::{Arg, Rule};

impl Tensor {
    /// `self != other` as bool, broadcast and promoted. NaN differs from everything.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1i64, 2, 3])?.ne(2)?.to_vec::<bool>()?, [true, false, true]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes that have no common one, tensors on different devices.
    pub fn ne<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run(&[self.into(), other.into()])
    }
}

/// `ne`
pub static DEF: OpDef = OpDef {
    schema: "ne(Tensor self, Tensor other) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST_TWO, rules::comparison),
    decomposition: None,
    derivative: Derivative::NotDifferentiable,
    forms: Forms::Out,
    dtypes: Dtypes::ALL,
    samples: || PAIRS.iter().map(|(a, b)| sample([plain(a), plain(b)])).collect(),
    errors: || broadcast_errors(&[]),
    entry: Entry::new(),
};
