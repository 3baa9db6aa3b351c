//! `maximum`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{Fill, PAIRS, Sample, SampleArg, broadcast_errors, sample, tensor};
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

fn samples() -> Vec<Sample> {
    let left = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![1.0, -2.0, 0.5, 3.0, -1.5, 2.0, -3.0]));
    let right = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![-0.75, 1.25, -2.25, 0.25, 4.0]));
    let pairs = PAIRS.iter().map(|(a, b)| sample([left(a), right(b)]));
    let more = [
        sample([left(&[3, 4]), SampleArg::Float(0.1)]),
        Sample { smooth: false, ..sample([left(&[7]), left(&[7])]) },
    ];
    pairs.chain(more).collect()
}

/// The part of `grad` that goes to `own`: all of it unless `rival` won, half where both are equal.
fn share(grad: &Tensor, own: Arg<'_>, rival: Arg<'_>) -> Result<Tensor> {
    let lost = super::lt::DEF.run(&[own, rival])?;
    let tied = super::eq::DEF.run(&[own, rival])?;
    lost.select_where(0, &tied.select_where(&grad.mul(0.5)?, grad)?)
}

/// `maximum`
pub static DEF: OpDef = OpDef {
    schema: "maximum(Tensor self, Tensor other) -> Tensor",
    rule: Rule::Dense(rules::binary),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b11,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || share(b.grad(0)?, b.saved(0)?.arg(), b.saved(1)?.arg()))?;
            g.set(1, || share(b.grad(0)?, b.saved(1)?.arg(), b.saved(0)?.arg()))
        },
    },
    forms: Forms::Out,
    dtypes: Dtypes::ALL,
    samples,
    errors: || broadcast_errors(&[]),
    entry: Entry::new(),
};
