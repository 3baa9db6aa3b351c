//! `addcdiv`
//!
//! Arguments:
//! - `value`: the factor of the quotient or product.

use super::derived;
use crate::Tensor;
use crate::ops::composite::in_range;
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use crate::ops::sample::{ErrorSample, Fill, SampleArg, error, fixed, plain};
use crate::ops::{forms, rules};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Rule, Typing};

forms! {
    /// `self + tensor1 / tensor2`, all broadcast and promoted.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([1.0f32])?, Tensor::new([4.0f32])?);
    /// assert_eq!(a.addcdiv(&b, &b)?.to_vec::<f32>()?, [2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Integers; shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    pub fn addcdiv<'a>(&'a self, tensor1: &'a Tensor, tensor2: &'a Tensor), defaults: [Arg::Int(1)],
        in_place: addcdiv_ {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::Tensor;
        /// let (a, b) = (Tensor::new([1.0f32])?, Tensor::new([4.0f32])?);
        /// a.addcdiv_(&b, &b)?;
        /// assert_eq!(a.to_vec::<f32>()?, [2.0]);
        /// # Ok(()) }
        /// ```
        };

    /// `self + value * tensor1 / tensor2`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([1.0f32])?, Tensor::new([4.0f32])?);
    /// assert_eq!(a.addcdiv_with(&b, &b, 2.0)?.to_vec::<f32>()?, [3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::addcdiv`]; a fractional factor for integers.
    pub fn addcdiv_with<'a>(&'a self, tensor1: &'a Tensor, tensor2: &'a Tensor, value: impl Into<Arg<'a>>),
        in_place: addcdiv_with_ {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::Tensor;
        /// let (a, b) = (Tensor::new([1.0f32])?, Tensor::new([4.0f32])?);
        /// a.addcdiv_with_(&b, &b, 2.0)?;
        /// assert_eq!(a.to_vec::<f32>()?, [3.0]);
        /// # Ok(()) }
        /// ```
        };
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    let dtype = args.promote(rules::FIRST_THREE)?;
    rules::require(args, 1, dtype, dtype.is_inexact(), "a float dtype, as quotients are no integers")?;
    Ok(Typing::of(dtype))
}

fn errors() -> Vec<ErrorSample> {
    let ints = || fixed(&[2], crate::DType::I64, Fill::Values(vec![1.0, 2.0]));
    vec![
        error([ints(), ints(), ints(), SampleArg::Int(1)], "a float dtype"),
        error([plain(&[3]), plain(&[2]), plain(&[3]), SampleArg::Int(1)], "do not broadcast"),
    ]
}

/// `addcdiv`
pub static DEF: OpDef = OpDef::new(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    Rule::Elementwise(rules::FIRST_THREE, rule),
    Derivative::of_inputs(0b110, |b, g| {
        g.set(0, || Ok(b.grad(0)?.clone()))?;
        let scaled = in_range(b.grad(0)?)?.mul(b.arg(3))?;
        g.set(1, || scaled.div(b.saved(2)?.arg()))?;
        // Multiplied between the divisions, since the product of the quotients may exceed the range of the gradient.
        g.set(2, || {
            let (own, by) = (b.saved(1)?, b.saved(2)?);
            let quotient = super::div::DEF.run(&[own.arg(), by.arg(), Arg::None])?;
            scaled.mul(&quotient)?.div(by.arg())?.neg()
        })
    }),
    super::addcmul::samples,
)
.forms(Forms::InPlace)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.decomposed(derived::ADDCDIV)
.with(OpFlags::HOLOMORPHIC);
