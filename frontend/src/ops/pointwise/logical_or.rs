//! `logical_or`

use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{Fill, PAIRS, broadcast_errors, sample, tensor};
use crate::{DType, Tensor};
use keyway_dispatcher::op::{Arg, Rule, Typing};

impl Tensor {
    /// Whether either is true, where every number but 0 counts as true; the result is bool.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::from_slice(&[0.5f32, 0.0, 2.0])?, Tensor::from_slice(&[true, false, false])?);
    /// assert_eq!(a.logical_or(&b)?.to_vec::<bool>()?, [true, false, true]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, tensors on different devices.
    pub fn logical_or<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run(&[self.into(), other.into()])
    }

    /// [`Tensor::logical_or`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn logical_or_<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), other.into()])
    }
}

/// `logical_or`
pub static DEF: OpDef = OpDef {
    schema: "logical_or(Tensor self, Tensor other) -> Tensor",
    // Whatever the dtypes, their truth values are what the kernel sees.
    rule: Rule::Elementwise(rules::FIRST_TWO, |_| Ok(Typing::of(DType::BOOL))),
    decomposition: None,
    derivative: Derivative::NotDifferentiable,
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples: || {
        let truth = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![0.0, 1.0, 2.0, 0.0, 0.0]));
        PAIRS.iter().map(|(a, b)| sample([tensor(a, Fill::Index(2)), truth(b)])).collect()
    },
    errors: || broadcast_errors(&[]),
    entry: Entry::new(),
};
