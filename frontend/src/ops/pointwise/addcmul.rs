//! `addcmul`
//!
//! Arguments:
//! - `value`: the factor of the quotient or product.

use super::derived;
use crate::Tensor;
use crate::ops::composite::in_range;
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use crate::ops::sample::{ErrorSample, Fill, PAIRS, Sample, SampleArg, error, fixed, plain, sample, tensor};
use crate::ops::{forms, rules};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Rule, Typing};

forms! {
    /// `self + tensor1 * tensor2`, all broadcast and promoted.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([1.0f32])?, Tensor::new([4.0f32])?);
    /// assert_eq!(a.addcmul(&b, &b)?.to_vec::<f32>()?, [17.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Two bool operands; shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    pub fn addcmul<'a>(&'a self, tensor1: &'a Tensor, tensor2: &'a Tensor), defaults: [Arg::Int(1)],
        in_place: addcmul_ {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::Tensor;
        /// let (a, b) = (Tensor::new([1.0f32])?, Tensor::new([4.0f32])?);
        /// a.addcmul_(&b, &b)?;
        /// assert_eq!(a.to_vec::<f32>()?, [17.0]);
        /// # Ok(()) }
        /// ```
        };

    /// `self + value * tensor1 * tensor2`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([1.0f32])?, Tensor::new([4.0f32])?);
    /// assert_eq!(a.addcmul_with(&b, &b, 2.0)?.to_vec::<f32>()?, [33.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::addcmul`]; a fractional factor for integers.
    pub fn addcmul_with<'a>(&'a self, tensor1: &'a Tensor, tensor2: &'a Tensor, value: impl Into<Arg<'a>>),
        in_place: addcmul_with_ {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::Tensor;
        /// let (a, b) = (Tensor::new([1.0f32])?, Tensor::new([4.0f32])?);
        /// a.addcmul_with_(&b, &b, 2.0)?;
        /// assert_eq!(a.to_vec::<f32>()?, [33.0]);
        /// # Ok(()) }
        /// ```
        };
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    let dtype = args.promote(rules::FIRST_THREE)?;
    rules::require(args, 0, dtype, dtype != crate::DType::BOOL, "numbers")?;
    rules::whole_factor(args, 3, dtype)?;
    Ok(Typing::of(dtype))
}

/// The samples, shared with `addcdiv`: the divisor is bounded away from 0.
pub(super) fn samples() -> Vec<Sample> {
    let second = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![1.0, -2.0, 3.0, -1.5, 2.5]));
    let pairs = PAIRS.iter().map(|(a, b)| sample([plain(a), plain(b), second(a), SampleArg::Int(1)]));
    pairs.chain([sample([plain(&[4]), plain(&[3, 1]), second(&[]), SampleArg::Int(3)])]).collect()
}

fn errors() -> Vec<ErrorSample> {
    let ints = || fixed(&[2], crate::DType::I64, Fill::Values(vec![1.0, 2.0]));
    vec![
        error([ints(), ints(), ints(), SampleArg::Float(0.5)], "an integer"),
        error([plain(&[3]), plain(&[2]), plain(&[3]), SampleArg::Int(1)], "do not broadcast"),
    ]
}

/// `addcmul`
pub static DEF: OpDef = OpDef::new(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    Rule::Elementwise(rules::FIRST_THREE, rule),
    Derivative::of_inputs(0b110, |b, g| {
        g.set(0, || Ok(b.grad(0)?.clone()))?;
        let scaled = in_range(b.grad(0)?)?.mul(b.arg(3))?;
        g.set(1, || scaled.mul(b.saved(2)?.arg()))?;
        g.set(2, || scaled.mul(b.saved(1)?.arg()))
    }),
    samples,
)
.forms(Forms::InPlace)
.dtypes(Dtypes::NUMERIC)
.errors(errors)
.decomposed(derived::ADDCMUL)
.with(OpFlags::HOLOMORPHIC);
