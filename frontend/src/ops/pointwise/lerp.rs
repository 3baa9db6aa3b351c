//! `lerp`
//!
//! Arguments:
//! - `end`: the values at weight 1.
//! - `weight`: the weight of `end`: a tensor that broadcasts.

use crate::Tensor;
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::sample::{ErrorSample, Fill, PAIRS, Sample, SampleArg, error, fixed, plain, sample, uniform};
use crate::ops::{forms, rules};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Rule, Typing};

forms! {
    /// Linear interpolation: `self + weight * (end - self)`, all three broadcast and promoted.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([0.0f32])?, Tensor::new([10.0f32])?);
    /// assert_eq!(a.lerp(&b, 0.25)?.to_vec::<f32>()?, [2.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Operands that are not floats; shapes that do not broadcast, tensors on different devices.
    pub fn lerp<'a>(&'a self, end: &'a Tensor, weight: impl Into<Arg<'a>>), in_place: lerp_ {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::Tensor;
        /// let a = Tensor::new([0.0f32])?;
        /// a.lerp_(&Tensor::new([10.0f32])?, 0.25)?;
        /// assert_eq!(a.to_vec::<f32>()?, [2.5]);
        /// # Ok(()) }
        /// ```
    };
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    // Checked without the weight: a float weight would promote integers, between which there is no interpolation.
    let ends = args.promote(rules::FIRST_TWO)?;
    rules::require(args, 0, ends, ends.is_float(), "a float dtype")?;
    let dtype = args.promote(rules::FIRST_THREE)?;
    Ok(Typing::of(dtype))
}

fn samples() -> Vec<Sample> {
    let weight = |sizes: &[usize]| uniform(sizes, 0.0, 1.0);
    let pairs = PAIRS.iter().map(|(a, b)| sample([plain(a), plain(b), weight(b)]));
    let numbers = [0.25, 0.75].map(|w| sample([plain(&[3, 4]), plain(&[4]), SampleArg::Float(w)]));
    pairs.chain(numbers).collect()
}

fn errors() -> Vec<ErrorSample> {
    let ints = || fixed(&[2], crate::DType::I64, Fill::Index(4));
    vec![
        error([ints(), ints(), SampleArg::Float(0.5)], "a float dtype"),
        error([plain(&[3]), plain(&[2]), SampleArg::Float(0.5)], "do not broadcast"),
    ]
}

/// `lerp`
pub static DEF: OpDef = OpDef::new(
    "lerp(Tensor self, Tensor end, Tensor weight) -> Tensor",
    Rule::Elementwise(rules::FIRST_THREE, rule),
    Derivative::of_inputs(0b111, |b, g| {
        let grad = b.grad(0)?;
        // `1 - weight` is exact near 1; the difference of two gradients would be dominated by rounding.
        g.set(0, || match b.saved(2)?.arg() {
            Arg::Tensor(weight) => grad.mul(&Tensor::from_ref(weight.clone()).rsub(1)?),
            _ => grad.mul(1.0 - b.float(2)?),
        })?;
        g.set(1, || grad.mul(b.saved(2)?.arg()))?;
        g.set(2, || {
            let span = super::sub::DEF.run(&[b.saved(1)?.arg(), b.saved(0)?.arg(), Arg::Int(1)])?;
            grad.mul(&span)
        })
    }),
    samples,
)
.forms(Forms::InPlace)
.dtypes(Dtypes::FLOAT)
.errors(errors);
