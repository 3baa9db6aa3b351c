//! `celu`
//!
//! Arguments:
//! - `alpha`: the negative of the limit at minus infinity.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{ErrorSample, Fill, Sample, SampleArg, error, plain, unary_of};
use crate::ops::{forms, rules, sample};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Typing};

forms! {
    /// `x` if it is above 0, otherwise `alpha * (e^(x / alpha) - 1)`, whose slope at 0 is 1 for every `alpha`; here `alpha`
    /// is 1 (J. Barron, "Continuously differentiable exponential linear units", 2017).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-100.0f32, 2.0])?.celu_with(0.5)?.to_vec::<f32>()?, [-0.5, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; an `alpha` of 0.
    pub fn celu(&self), defaults: [Arg::Int(1)], in_place: celu_, on: -1.5;

    /// [`Tensor::celu`] with an `alpha`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([-40.0f32, 3.0])?;
    /// assert_eq!(x.celu_with(2)?.to_vec::<f32>()?, [-2.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn celu_with<'a>(&'a self, alpha: impl Into<Arg<'a>>), in_place: celu_with_, on: -1.5;
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    if args.float(1)? == 0.0 {
        return Err(rules::wrong_value(args, 1, "a number other than 0".to_string()));
    }
    rules::unary_real(args)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (t, alpha) = (tensor(args, 0)?, args.float(1)?);
    let x = widened(&t)?;
    let below = x.mul(1.0 / alpha)?.expm1()?.mul(alpha)?;
    cast(x.gt(0)?.where_cond(&x, &below)?, t.dtype())
}

fn samples() -> Vec<Sample> {
    let fill = Fill::AwayFrom(-2.2, 2.2, 0.05);
    [unary_of(&fill, &[SampleArg::Int(1)]), unary_of(&fill, &[SampleArg::Float(0.5)])].concat()
}

fn errors() -> Vec<ErrorSample> {
    let zero = error([plain(&[2]), SampleArg::Float(0.0)], "other than 0");
    [vec![zero], sample::refuses_integers(&[SampleArg::Int(1)])].concat()
}

/// `celu`
pub static DEF: OpDef = OpDef::unary(
    "celu(Tensor self, Scalar alpha=1) -> Tensor",
    rule,
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || {
            let (grad, x) = (widened(b.grad(0)?)?, widened(&b.input(0)?)?);
            let below = x.minimum(0)?.mul(1.0 / b.float(1)?)?.exp()?;
            x.gt(0)?.where_cond(&grad, &grad.mul(&below)?)
        })
    }),
)
.with(OpFlags::ZERO_PRESERVING)
.dtypes(Dtypes::FLOAT)
.samples(samples)
.errors(errors)
.decomposed(|args| one(compose(args)));
