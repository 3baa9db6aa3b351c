//! `nan_to_num`
//!
//! Arguments:
//! - `nan`: the replacement of NaN; None for 0.
//! - `posinf`: the replacement of infinity; None for the largest finite value.
//! - `neginf`: the replacement of minus infinity; None for the least finite value.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{Fill, Sample, SampleArg, sample, tensor as filled, unary_of};
use crate::ops::{forms, rules};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Typing};

forms! {
    /// Replaces NaN by 0, and the infinities by the largest and the smallest finite value of the dtype. The gradient of
    /// replaced elements is 0. Integers and bool are unchanged.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f32, f32::NAN, f32::INFINITY])?;
    /// assert_eq!(x.nan_to_num()?.to_vec::<f32>()?, [1.0, 0.0, f32::MAX]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn nan_to_num(&self), defaults: [Arg::None, Arg::None, Arg::None], in_place: nan_to_num_, out: nan_to_num_out, on: -1.5;
}

impl Tensor {
    /// [`Tensor::nan_to_num`] with these replacements; `None` is the default. A replacement beyond the dtype's range becomes
    /// infinite.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([f32::NAN, f32::INFINITY, f32::NEG_INFINITY])?;
    /// let y = x.nan_to_num_with(Some(1.0), Some(2.0), Some(3.0))?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn nan_to_num_with(
        &self,
        nan: Option<f64>,
        posinf: Option<f64>,
        neginf: Option<f64>,
    ) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::optional(nan), Arg::optional(posinf), Arg::optional(neginf)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    let typing = rules::unary(args)?;
    let real = !typing.compute.is_complex();
    rules::require(args, 0, typing.compute, real, "a real dtype; apply it to `view_as_real()`")?;
    Ok(typing)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let x = tensor(args, 0)?;
    if !x.dtype().is_float() {
        return x.copy();
    }
    let or = |i: usize, usual: f64| if matches!(args.get(i), Arg::None) { Ok(usual) } else { args.float(i) };
    let most = x.dtype().limits().map_or(f64::MAX, |limits| limits.max);
    let made = x.eq(f64::INFINITY)?.where_cond(or(2, most)?, &x)?;
    let made = x.eq(f64::NEG_INFINITY)?.where_cond(or(3, -most)?, &made)?;
    x.isnan()?.where_cond(or(1, 0.0)?, &made)
}

fn samples() -> Vec<Sample> {
    let none = || SampleArg::None;
    let odd = || filled(&[7], Fill::Values(vec![1.5, f64::NAN, f64::INFINITY, -0.5, f64::NEG_INFINITY, 0.0]));
    let with = |rest: [SampleArg; 3]| {
        let call = sample([odd()].into_iter().chain(rest));
        Sample { smooth: false, ..call }
    };
    let mut samples = unary_of(&Fill::Uniform(-2.0, 2.0), &[none(), none(), none()]);
    samples.push(with([none(), none(), none()]));
    samples.push(with([SampleArg::Float(0.5), SampleArg::Float(100.0), SampleArg::Float(-100.0)]));
    samples
}

/// `nan_to_num`
pub static DEF: OpDef = OpDef::unary(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    rule,
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.input(0)?.isfinite()?.where_cond(b.grad(0)?, 0))),
)
.samples(samples)
.decomposed(|args| one(compose(args)))
.with(OpFlags::EXACT)
.with(OpFlags::SIGNED_ZEROS)
.with(OpFlags::ZERO_PRESERVING);
