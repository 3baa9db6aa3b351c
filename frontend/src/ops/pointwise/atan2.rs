//! `atan2`

use crate::Tensor;
use crate::error::Result;
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
    /// Shapes that do not broadcast, dtypes that have no common one, tensors on different devices.
    #[doc(alias = "arctan2")]
    pub fn atan2<'a>(&'a self, other: impl Into<Arg<'a>>), in_place: atan2_;
}

fn samples() -> Vec<Sample> {
    let y = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![0.5, -1.25, 2.0, -0.75, 1.5, 3.0, -2.0]));
    let x = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![1.0, -1.5, 0.5, 2.5, -2.0]));
    let pairs = PAIRS.iter().map(|(a, b)| sample([y(a), x(b)]));
    pairs.chain([sample([y(&[3, 4]), SampleArg::Float(1.5)]), sample([SampleArg::Int(1), x(&[2])])]).collect()
}

/// `1 / (y^2 + x^2)`, and 1 at the origin, where the numerators are 0.
fn inverse_square(y: Arg<'_>, x: Arg<'_>) -> Result<Tensor> {
    let square = |v: Arg<'_>| super::mul::DEF.run(&[v, v]);
    let sum = match (y, x) {
        (Arg::Tensor(_), Arg::Tensor(_)) => square(y)?.add(&square(x)?)?,
        (Arg::Tensor(_), number) => square(y)?.add(number_squared(number))?,
        (number, _) => square(x)?.add(number_squared(number))?,
    };
    let safe = sum.eq(0)?.where_cond(1, &sum)?;
    safe.rdiv(1)
}

fn number_squared(number: Arg<'_>) -> f64 {
    match number {
        Arg::Float(v) => v * v,
        Arg::Int(v) => v as f64 * v as f64,
        Arg::Bool(v) => f64::from(u8::from(v)),
        _ => 0.0,
    }
}

/// `atan2`
pub static DEF: OpDef = OpDef::binary(
    "atan2(Tensor self, Tensor other) -> Tensor",
    rules::binary_float,
    Derivative::of_inputs(0b11, |b, g| {
        let (y, x) = (b.saved(0)?, b.saved(1)?);
        let scaled = b.grad(0)?.mul(&inverse_square(y.arg(), x.arg())?)?;
        g.set(0, || scaled.mul(x.arg()))?;
        g.set(1, || scaled.mul(y.arg())?.mul(-1))
    }),
)
.samples(samples);
