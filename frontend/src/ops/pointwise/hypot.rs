//! `hypot`

use super::pair;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, one};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::sample::{
    Fill, PAIRS, Sample, SampleArg, broadcast_errors, refuses_integer_pairs, sample, tensor,
};
use crate::ops::{forms, rules};
use keyway_dispatcher::op::{Arg, Args};

forms! {
    /// `sqrt(self^2 + other^2)` without intermediate overflow, broadcast and promoted. Infinite if either operand is, even if
    /// the other is NaN (IEEE 754). The gradient at the origin is 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([3.0f32, -3e38])?.hypot(4.0)?.to_vec::<f32>()?, [5.0, 3e38]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Operands that are not floats; shapes that do not broadcast, tensors on different devices.
    pub fn hypot<'a>(&'a self, other: impl Into<Arg<'a>>), in_place: hypot_, out: hypot_out;
}

/// The larger magnitude times `sqrt(1 + (smaller / larger)^2)`.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, y, dtype) = pair::real(args)?;
    let (x, y) = (x.abs()?, y.abs()?);
    let (longer, shorter) = (x.maximum(&y)?, x.minimum(&y)?);
    let made = shorter.div(&longer)?.square()?.add(1)?.sqrt()?.mul(&longer)?;
    // `0 / 0` and the quotient of infinities are NaN.
    let made = longer.eq(0)?.where_cond(&longer, &made)?;
    let infinite = x.eq(f64::INFINITY)?.logical_or(&y.eq(f64::INFINITY)?)?;
    cast(infinite.where_cond(f64::INFINITY, &made)?, dtype)
}

fn samples() -> Vec<Sample> {
    let x = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![0.5, -1.25, 2.0, -0.75, 1.5, 3.0, -2.0]));
    let y = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![1.0, -1.5, 0.5, 2.5, -2.0]));
    let pairs = PAIRS.iter().map(|(a, b)| sample([x(a), y(b)]));
    pairs.chain([sample([x(&[3, 4]), SampleArg::Float(1.5)]), sample([SampleArg::Int(1), y(&[2])])]).collect()
}

/// `hypot`
pub static DEF: OpDef = OpDef::binary(
    "hypot(Tensor self, Tensor other) -> Tensor",
    rules::binary_real,
    // Computed from the operands divided by the larger one: the result itself may have overflowed.
    Derivative::of_inputs(0b11, |b, g| {
        let [x, y] = pair::saved(b)?;
        let legs = pair::Legs::of(&x, &y)?;
        let length = legs.length()?;
        g.set(0, || b.grad(0)?.mul(&legs.first)?.div(&length))?;
        g.set(1, || b.grad(0)?.mul(&legs.second)?.div(&length))
    }),
)
.dtypes(Dtypes::FLOAT)
.samples(samples)
.errors(|| [broadcast_errors(&[]), refuses_integer_pairs()].concat())
.decomposed(|args| one(compose(args)));
