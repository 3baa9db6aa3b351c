//! `pow`
//!
//! Arguments:
//! - `exponent`: the exponents, broadcast with `self`.

use crate::error::{Result, called};
use crate::ops::composite::in_range;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{
    ErrorSample, Fill, PAIRS, Sample, SampleArg, broadcast_errors, error, fixed, plain, sample, tensor,
    uniform,
};
use crate::ops::{forms, rules};
use crate::{Complex, DType, Tensor};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Typing};
use std::f64::consts::PI;

forms! {
    /// `self` to the power of `exponent`, broadcast and promoted.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([2.0f32, 3.0])?.pow(2)?.to_vec::<f32>()?, [4.0, 9.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// A sparse tensor accepts a number above 0 as its exponent, which maps unstored elements to 0; duplicates are added first.
    /// Other exponents make every unstored element 1 or infinity, so they need `to_dense()`.
    ///
    /// # Errors
    /// An integer to a negative power; two bool operands; shapes that do not broadcast, dtypes without a
    /// common one, tensors on different devices.
    #[doc(alias = "powf")]
    pub fn pow<'a>(&'a self, exponent: impl Into<Arg<'a>>), in_place: pow_, out: pow_out;
}

impl Tensor {
    /// `base` to the power of `self`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f32, 3.0])?;
    /// assert_eq!(x.rpow(2.0)?.to_vec::<f32>()?, [2.0, 8.0]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn rpow<'a>(&'a self, base: impl Into<Arg<'a>>) -> Result<Tensor> {
        called("rpow", &[], || DEF.run(&[base.into(), self.into()]))
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    let typing = rules::binary_held(args)?;
    rules::require(args, 0, typing.compute, typing.compute != DType::BOOL, "numbers")?;
    match args.get(1) {
        Arg::Int(exponent) if exponent < 0 && typing.compute.is_integer() => Err(Error::Value {
            op: args.name(),
            argument: "exponent",
            expected: "0 or more for integers".to_string(),
            got: exponent.to_string(),
        }),
        _ => Ok(typing),
    }
}

fn samples() -> Vec<Sample> {
    let base = |sizes: &[usize]| uniform(sizes, 0.5, 3.0);
    let exponent = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![2.0, 0.5, 1.0, 3.0, -0.5]));
    let pairs = PAIRS.iter().map(|(a, b)| sample([base(a), exponent(b)]));
    let more = [
        sample([plain(&[3, 4]), SampleArg::Int(0)]),
        sample([plain(&[3, 4]), SampleArg::Int(1)]),
        sample([plain(&[3, 4]), SampleArg::Int(2)]),
        sample([plain(&[3, 4]), SampleArg::Int(3)]),
        sample([base(&[2, 3]), SampleArg::Float(0.5)]),
        sample([base(&[2, 3]), SampleArg::Float(-0.5)]),
        sample([base(&[2, 3]), SampleArg::Float(-1.0)]),
        sample([base(&[2, 3]), SampleArg::Float(2.3)]),
        sample([SampleArg::Int(2), exponent(&[2, 3])]),
        sample([SampleArg::Float(0.7), exponent(&[])]),
        // The gradient of the base is 0 at the exponent 0 by definition, unlike finite differences.
        Sample { smooth: false, ..sample([base(&[3]), tensor(&[3], Fill::Values(vec![0.0, 1.0]))]) },
    ];
    pairs.chain(more).collect()
}

fn errors() -> Vec<ErrorSample> {
    let ints = |fill| fixed(&[2], DType::I64, fill);
    let mut errors = broadcast_errors(&[]);
    errors.push(error([ints(Fill::Index(5)), SampleArg::Int(-1)], "0 or more"));
    errors.push(error([ints(Fill::Index(5)), ints(Fill::Values(vec![1.0, -2.0]))], "negative power"));
    errors
}

/// `grad * exponent * base^(exponent - 1)`, and 0 where the exponent is 0, even at base 0. The factors are multiplied one by
/// one, since the slope may exceed the range of the gradient. For negative exponents computed as
/// `grad * power * exponent / base`, since `base^(exponent - 1)` overflows before the power does.
fn base_gradient(grad: &Tensor, base: &Tensor, exponent: Arg<'_>, power: &Tensor) -> Result<Tensor> {
    let is_f16 = base.dtype() == DType::F16;
    let grad = &in_range(grad)?;
    match exponent {
        Arg::Tensor(t) => {
            let t = Tensor::from_ref(t.clone());
            let made = grad.mul(&in_range(base)?.pow(&t.sub(1)?)?)?.mul(&t)?;
            t.eq(0)?.where_cond(0, &made)
        }
        Arg::Int(0) | Arg::Float(0.0) => base.zeros_like(),
        Arg::Int(2) | Arg::Float(2.0) => grad.mul(base)?.mul(2),
        Arg::Int(n) if n < 0 && !is_f16 => grad.mul(power)?.mul(n)?.div(base),
        Arg::Float(n) if n < 0.0 && n.is_finite() && !is_f16 => grad.mul(power)?.mul(n)?.div(base),
        // Gradients exist only for floats, in which the lowest i64 and its successor are equal.
        Arg::Int(n) => grad.mul(&in_range(base)?.pow(n.saturating_sub(1))?)?.mul(n),
        Arg::Float(n) => grad.mul(&in_range(base)?.pow(n - 1.0)?)?.mul(n),
        _ => grad.mul(&base.pow(0)?),
    }
}

/// `grad * base^exponent * ln(base)`, factor by factor, and 0 where the base is 0 and the exponent is not negative.
fn exponent_gradient(grad: &Tensor, base: Arg<'_>, exponent: &Tensor, power: &Tensor) -> Result<Tensor> {
    let scaled = in_range(grad)?.mul(power)?;
    let number = match base {
        Arg::Tensor(t) => {
            let t = Tensor::from_ref(t.clone());
            // The logarithm of a negative number is complex.
            let t = if exponent.is_complex() && !t.is_complex() { t.to_dtype(exponent.dtype())? } else { t };
            let flat = t.eq(0)?.logical_and(&exponent.real()?.ge(0)?)?;
            // The logarithm of 0 is avoided there: its derivative, times a gradient of 0, would be NaN.
            let log = flat.where_cond(1, &t)?.log()?;
            return flat.where_cond(0, &scaled.mul(&log)?);
        }
        Arg::Float(v) => v,
        Arg::Int(v) => v as f64,
        _ => 1.0,
    };
    if number == 0.0 {
        // Infinite or 0 in a neighbourhood: a constant.
        let slope = power.detach().mul(f64::NEG_INFINITY)?;
        return grad.mul(&exponent.real()?.ge(0)?.where_cond(0, &slope)?);
    }
    if number < 0.0 && exponent.is_complex() {
        let log = Tensor::new(Complex::new(number.abs().ln(), PI))?.to_device(exponent.device())?;
        return scaled.mul(&log);
    }
    scaled.mul(number.ln())
}

/// `pow`
pub static DEF: OpDef = OpDef::binary(
    "pow(Tensor self, Tensor exponent) -> Tensor",
    rule,
    Derivative::Formula {
        saves: 0b11,
        saves_outputs: 0b1,
        formula: |b, g| {
            g.set(0, || base_gradient(b.grad(0)?, &b.input(0)?, b.saved(1)?.arg(), &b.output(0)?))?;
            g.set(1, || exponent_gradient(b.grad(0)?, b.saved(0)?.arg(), &b.input(1)?, &b.output(0)?))
        },
    },
)
.dtypes(Dtypes::NUMERIC)
.samples(samples)
.errors(errors)
.with(OpFlags::ZERO_PRESERVING_IF_POSITIVE)
.with(OpFlags::AUTOCAST_F32)
.with(OpFlags::HOLOMORPHIC);
