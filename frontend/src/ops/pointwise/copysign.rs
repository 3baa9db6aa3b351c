//! `copysign`

use super::pair;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, one};
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{Fill, PAIRS, Sample, SampleArg, sample, tensor};
use crate::ops::{forms, rules};
use keyway_dispatcher::op::{Arg, Args};

forms! {
    /// The magnitude of `self` with the sign of `other`, including the sign of a zero; broadcast and promoted. Integers become
    /// f32. The sign of a NaN is unspecified. Only `self` has a gradient; it is 0 where `self` is 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1.0f32, -2.0])?.copysign(-0.0)?.to_vec::<f32>()?, [-1.0, -2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    pub fn copysign<'a>(&'a self, other: impl Into<Arg<'a>>), in_place: copysign_, out: copysign_out;
}

/// The sign of the reciprocal distinguishes the zeros.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, y, dtype) = pair::real(args)?;
    let size = x.abs()?;
    let negative = y.lt(0)?.logical_or(&y.rdiv(1)?.lt(0)?)?;
    cast(negative.where_cond(&size.neg()?, &size)?, dtype)
}

fn samples() -> Vec<Sample> {
    let x = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![0.5, -1.25, 2.0, -0.75, 1.5, 3.0, -2.0]));
    let y = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![1.0, -1.5, 0.5, 2.5, -2.0]));
    let pairs = PAIRS.iter().map(|(a, b)| sample([x(a), y(b)]));
    let zeros = tensor(&[4], Fill::Values(vec![0.0, -0.0, 0.0, 1.0]));
    let more = [
        sample([x(&[3, 4]), SampleArg::Float(-1.5)]),
        sample([SampleArg::Int(1), y(&[2])]),
        Sample { smooth: false, ..sample([x(&[4]), zeros]) },
    ];
    pairs.chain(more).collect()
}

/// `copysign`
pub static DEF: OpDef = OpDef::binary(
    "copysign(Tensor self, Tensor other) -> Tensor",
    rules::binary_float,
    Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0b1,
        formula: |b, g| {
            // Only a tensor can require a gradient.
            g.set(0, || b.grad(0)?.mul(&b.input(0)?.sign()?)?.mul(&b.output(0)?.sign()?))?;
            g.set(1, || b.grad(0)?.zeros_like())
        },
    },
)
.samples(samples)
.decomposed(|args| one(compose(args)))
.with(OpFlags::EXACT)
.with(OpFlags::SIGNED_ZEROS);
