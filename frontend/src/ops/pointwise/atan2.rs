//! `atan2`

use super::pair;
use crate::ops::def::{Derivative, OpDef};
use crate::ops::sample::{Fill, PAIRS, Sample, SampleArg, sample, tensor};
use crate::ops::{forms, rules};
use keyway_dispatcher::op::Arg;

forms! {
    /// The angle of the point (`other`, `self`), in radians from -π to π. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let y = Tensor::new([1.0f64])?;
    /// assert_eq!(y.atan2(0.0)?.to_vec::<f64>()?, [std::f64::consts::FRAC_PI_2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    #[doc(alias = "arctan2")]
    pub fn atan2<'a>(&'a self, other: impl Into<Arg<'a>>), in_place: atan2_;
}

fn samples() -> Vec<Sample> {
    let y = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![0.5, -1.25, 2.0, -0.75, 1.5, 3.0, -2.0]));
    let x = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![1.0, -1.5, 0.5, 2.5, -2.0]));
    let pairs = PAIRS.iter().map(|(a, b)| sample([y(a), x(b)]));
    pairs.chain([sample([y(&[3, 4]), SampleArg::Float(1.5)]), sample([SampleArg::Int(1), x(&[2])])]).collect()
}

/// `atan2`
pub static DEF: OpDef = OpDef::binary(
    "atan2(Tensor self, Tensor other) -> Tensor",
    rules::binary_float,
    Derivative::of_inputs(0b11, |b, g| {
        // `x / (x^2 + y^2)` of the operands divided by the larger one, so that the squares neither overflow nor both underflow.
        let [y, x] = pair::saved(b)?;
        let legs = pair::Legs::of(&y, &x)?;
        let length = legs.length()?;
        let scaled = b.grad(0)?.div(&length)?.div(&length)?;
        g.set(0, || scaled.mul(&legs.second)?.div(&legs.longer))?;
        g.set(1, || scaled.mul(&legs.first)?.div(&legs.longer)?.neg())
    }),
)
.samples(samples);
