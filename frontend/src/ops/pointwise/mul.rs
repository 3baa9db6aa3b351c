//! `mul`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{PAIRS, Sample, SampleArg, broadcast_errors, plain, sample};
use keyway_dispatcher::op::{Arg, Rule};

impl Tensor {
    /// `self * other`, element by element, broadcast and promoted.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_slice(&[1.0f32, 2.0])?;
    /// assert_eq!(a.mul(&a)?.to_vec::<f32>()?, [1.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes that have no common one, tensors on different devices.
    pub fn mul<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run(&[self.into(), other.into()])
    }

    /// `self *= other`.
    #[allow(clippy::missing_errors_doc)]
    pub fn mul_<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), other.into()])
    }

    /// `out = self * other`.
    #[allow(clippy::missing_errors_doc)]
    pub fn mul_out<'a>(&'a self, other: impl Into<Arg<'a>>, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into(), other.into()], out)
    }
}

fn samples() -> Vec<Sample> {
    let pairs = PAIRS.iter().map(|(a, b)| sample([plain(a), plain(b)]));
    pairs.chain([sample([plain(&[3, 4]), SampleArg::Int(2)])]).collect()
}

/// `mul`
pub static DEF: OpDef = OpDef {
    schema: "mul(Tensor self, Tensor other) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST_TWO, rules::binary),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b11,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || b.grad(0)?.mul(b.saved(1)?.arg()))?;
            g.set(1, || b.grad(0)?.mul(b.saved(0)?.arg()))
        },
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples,
    errors: || broadcast_errors(&[]),
    entry: Entry::new(),
}
.with(Facts::SIGNED_ZEROS);
