//! `xlogy`

use super::pair;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, in_range, one};
use crate::ops::def::{Derivative, OpDef};
use crate::ops::sample::{PAIRS, Sample, SampleArg, sample, uniform};
use crate::ops::{forms, rules};
use keyway_dispatcher::op::{Arg, Args};

forms! {
    /// `self * log(other)`, and 0 where `self` is 0 and `other` is not NaN; broadcast and promoted. Integers become f32. The
    /// gradients are 0 too where `self` is 0 and `other` is not above 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let p = Tensor::new([0.0f32, 1.0])?;
    /// assert_eq!(p.xlogy(&p)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    pub fn xlogy<'a>(&'a self, other: impl Into<Arg<'a>>), in_place: xlogy_, out: xlogy_out;
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, y, dtype) = pair::real(args)?;
    let made = x.eq(0)?.where_cond(0, &x.mul(&y.log()?)?)?;
    cast(y.isnan()?.where_cond(f64::NAN, &made)?, dtype)
}

fn samples() -> Vec<Sample> {
    let (x, y) = (|sizes: &[usize]| uniform(sizes, 0.2, 2.0), |sizes: &[usize]| uniform(sizes, 0.3, 3.0));
    let pairs = PAIRS.iter().map(|(a, b)| sample([x(a), y(b)]));
    pairs.chain([sample([x(&[3, 4]), SampleArg::Float(1.5)]), sample([SampleArg::Int(2), y(&[4])])]).collect()
}

/// `xlogy`
pub static DEF: OpDef = OpDef::binary(
    "xlogy(Tensor self, Tensor other) -> Tensor",
    rules::binary_float,
    Derivative::of_inputs(0b11, |b, g| {
        let [x, y] = pair::saved(b)?;
        // Where the result is 0 in a neighbourhood, division by 0 and the logarithm of 0 are avoided.
        let none = x.eq(0)?.logical_and(&y.le(0)?)?;
        let inside = none.where_cond(1, &y)?;
        g.set(0, || b.grad(0)?.mul(&inside.log()?))?;
        // Factor by factor, since the quotient may exceed the range of the gradient.
        g.set(1, || in_range(b.grad(0)?)?.mul(&x)?.div(&inside))
    }),
)
.samples(samples)
.decomposed(|args| one(compose(args)));
