//! `maximum`

use super::rival;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::broadcast_errors;
use keyway_dispatcher::op::{Arg, Rule};

impl Tensor {
    /// The larger of `self` and `other`, element by element, broadcast and promoted. NaN if either is.
    /// Where both are equal each takes half of the gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1i64, 3])?.maximum(2)?.to_vec::<i64>()?, [2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes that have no common one, tensors on different devices.
    pub fn maximum<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run(&[self.into(), other.into()])
    }

    /// [`Tensor::maximum`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn maximum_out<'a>(&'a self, other: impl Into<Arg<'a>>, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into(), other.into()], out)
    }
}

/// `maximum`
pub static DEF: OpDef = OpDef {
    schema: "maximum(Tensor self, Tensor other) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST_TWO, rules::binary),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b11,
        saves_outputs: 0,
        formula: |b, g| rival::derivative(b, g, &super::lt::DEF),
    },
    forms: Forms::Out,
    dtypes: Dtypes::ALL,
    samples: rival::samples,
    errors: || broadcast_errors(&[]),
    entry: Entry::new(),
}
.with(Facts::EXACT);
