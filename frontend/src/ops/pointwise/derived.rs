//! Decompositions of element-wise ops into simpler ones, for devices with few kernels.
//!
//! Decisions:
//! - comparisons are reduced to `ge`, logical ops to `where` of bool, selections to `where` and `maximum`;
//! - formulas of several roundings compute f16 and bf16 in f32.

use super::{add, div, ge, gt, maximum, minimum, mul, ne, where_};
use crate::error::Result;
use crate::ops::composite::{cast, one, tensor, widened};
use crate::ops::def::Decompose;
use crate::ops::rules::{FIRST_THREE, FIRST_TWO, float_of};
use crate::{DType, Tensor};
use keyway_dispatcher::op::{Arg, Args};
use keyway_sdk::mills;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// Declares a decomposition for each name: the function that composes its only result.
macro_rules! derived {
    ($($name:ident = $run:expr;)*) => {$(
        pub(super) const $name: Decompose = |args| one($run(args));
    )*};
}

derived! {
    ABS = abs;
    ADDCDIV = addcdiv;
    ADDCMUL = addcmul;
    CLAMP = clamp;
    EQ = eq;
    GELU = gelu;
    GELU_BACKWARD = gelu_backward;
    GT = gt;
    HARDSWISH_BACKWARD = hardswish_backward;
    ISNAN = isnan;
    LE = le;
    LEAKY_RELU = leaky_relu;
    LOG1P = log1p;
    LOGICAL_AND = logical_and;
    LOGICAL_NOT = logical_not;
    LOGICAL_OR = logical_or;
    LOGICAL_XOR = logical_xor;
    LT = lt;
    MINIMUM = minimum;
    NE = ne;
    NEG = neg;
    RECIPROCAL = reciprocal;
    RELU = relu;
    RELU_BACKWARD = relu_backward;
    RSQRT = rsqrt;
    SIGMOID = sigmoid;
    SIGMOID_BACKWARD = sigmoid_backward;
    SIGN = sign;
    SILU = silu;
    SILU_BACKWARD = silu_backward;
    SOFTPLUS = softplus;
    SOFTPLUS_BACKWARD = softplus_backward;
    SOFTSHRINK_BACKWARD = softshrink_backward;
    SQUARE = square;
    SUB = difference;
    TANH_BACKWARD = tanh_backward;
}

/// A tensor or number argument.
enum Operand<'a> {
    Tensor(Tensor),
    Number(Arg<'a>),
}

impl<'a> Operand<'a> {
    /// Argument `i`, with f16 and bf16 widened to f32.
    fn wide(args: &Args<'a>, i: usize) -> Result<Operand<'a>> {
        Ok(match args.get(i) {
            Arg::Tensor(_) => Operand::Tensor(widened(&tensor(args, i)?)?),
            number => Operand::Number(number),
        })
    }

    fn arg(&self) -> Arg<'_> {
        match self {
            Operand::Tensor(t) => t.into(),
            Operand::Number(number) => *number,
        }
    }
}

/// Argument `i` in the float compute dtype, with f16 and bf16 widened to f32.
fn real(args: &Args<'_>, i: usize) -> Result<Tensor> {
    let t = tensor(args, i)?;
    let dtype = float_of(t.dtype());
    widened(&cast(t, dtype)?)
}

/// Casts a result to the promoted dtype of the arguments in `mask`, with integers as f32.
fn narrowed(args: &Args<'_>, mask: u32, made: Tensor) -> Result<Tensor> {
    cast(made, float_of(args.promote(mask)?))
}

/// Argument `i` as bool.
fn truth(args: &Args<'_>, i: usize) -> Result<Tensor> {
    match args.get(i) {
        Arg::Tensor(_) => cast(tensor(args, i)?, DType::BOOL),
        _ => Tensor::new(args.float(i)? != 0.0),
    }
}

fn choose(condition: &Tensor, yes: Arg<'_>, no: Arg<'_>) -> Result<Tensor> {
    where_::DEF.run(&[condition.into(), yes, no])
}

fn difference(args: &Args<'_>) -> Result<Tensor> {
    let alpha = match args.get(2) {
        Arg::Int(alpha) => Arg::Int(alpha.wrapping_neg()),
        Arg::Bool(alpha) => Arg::Int(-i64::from(alpha)),
        _ => Arg::Float(-args.float(2)?),
    };
    add::DEF.run(&[args.get(0), args.get(1), alpha])
}

/// Returns +0 for -0, and the lowest integer for itself.
fn abs(args: &Args<'_>) -> Result<Tensor> {
    let x = tensor(args, 0)?;
    choose(&x.gt(0)?, (&x).into(), (&x.rsub(0)?).into())
}

/// Multiplies by -1, so that 0 becomes -0; a difference from 0 would be +0.
fn neg(args: &Args<'_>) -> Result<Tensor> {
    tensor(args, 0)?.mul(-1)
}

/// `log(u) x / (u - 1)` with the rounded `u = 1 + x`: the quotient compensates for the rounding (W. Kahan's formula). Where `u`
/// is 1 the result is `x`, and where it is `x`, infinities included, `log(x)`.
fn log1p(args: &Args<'_>) -> Result<Tensor> {
    let x = real(args, 0)?;
    let u = x.add(1)?;
    let log = u.log()?;
    let corrected = log.mul(&x.div(&u.sub(1)?)?)?;
    let large = choose(&u.eq(&x)?, (&log).into(), (&corrected).into())?;
    narrowed(args, 0b1, choose(&u.eq(1)?, (&x).into(), (&large).into())?)
}

/// `(x > 0) - (x < 0)`: 0 for NaN.
fn sign(args: &Args<'_>) -> Result<Tensor> {
    let x = tensor(args, 0)?;
    if x.dtype() == DType::BOOL {
        return x.gt(false);
    }
    x.gt(0)?.to_dtype(x.dtype())?.sub(&x.lt(0)?.to_dtype(x.dtype())?)
}

fn square(args: &Args<'_>) -> Result<Tensor> {
    let x = tensor(args, 0)?;
    let x = if x.dtype() == DType::BOOL { x.to_dtype(DType::I64)? } else { x };
    x.mul(&x)
}

fn reciprocal(args: &Args<'_>) -> Result<Tensor> {
    div::DEF.run(&[Arg::Int(1), args.get(0), Arg::None])
}

fn rsqrt(args: &Args<'_>) -> Result<Tensor> {
    div::DEF.run(&[Arg::Int(1), (&tensor(args, 0)?.sqrt()?).into(), Arg::None])
}

fn relu(args: &Args<'_>) -> Result<Tensor> {
    tensor(args, 0)?.maximum(0)
}

fn relu_backward(args: &Args<'_>) -> Result<Tensor> {
    // So that the gradient passes where the output is NaN.
    let made = choose(&tensor(args, 1)?.le(0)?, Arg::Int(0), args.get(0))?;
    narrowed(args, FIRST_TWO, made)
}

fn leaky_relu(args: &Args<'_>) -> Result<Tensor> {
    let x = tensor(args, 0)?;
    choose(&x.gt(0)?, (&x).into(), (&x.mul(args.get(1))?).into())
}

/// NaN in either operand propagates.
fn minimum(args: &Args<'_>) -> Result<Tensor> {
    let (own, other) = if matches!(args.get(0), Arg::Tensor(_)) { (0, 1) } else { (1, 0) };
    let (own, other) = (cast(tensor(args, own)?, args.promote(FIRST_TWO)?)?, args.get(other));
    let first = own.lt(other)?.logical_or(&own.ne(&own)?)?;
    choose(&first, (&own).into(), other)
}

fn clamp(args: &Args<'_>) -> Result<Tensor> {
    // A bound outside of the range of an integer dtype has no effect, and so is replaced by the end of the range: the rule
    // has refused a bound beyond which all elements are.
    let range = args.promote(FIRST_THREE)?.integer_range();
    let bound = |i: usize| match (args.get(i), range) {
        (Arg::Int(v), Some((low, high))) => Arg::Int(i128::from(v).clamp(low, high) as i64),
        (other, _) => other,
    };
    match (bound(1), bound(2)) {
        (min, Arg::None) => maximum::DEF.run(&[args.get(0), min]),
        (Arg::None, max) => minimum::DEF.run(&[args.get(0), max]),
        (min, max) => {
            let above = maximum::DEF.run(&[args.get(0), min])?;
            minimum::DEF.run(&[(&above).into(), max])
        }
    }
}

fn lt(args: &Args<'_>) -> Result<Tensor> {
    gt::DEF.run(&[args.get(1), args.get(0)])
}

fn le(args: &Args<'_>) -> Result<Tensor> {
    ge::DEF.run(&[args.get(1), args.get(0)])
}

/// `self >= other` and `other >= self`.
fn both(args: &Args<'_>) -> Result<(Tensor, Tensor)> {
    let (a, b) = (args.get(0), args.get(1));
    Ok((ge::DEF.run(&[a, b])?, ge::DEF.run(&[b, a])?))
}

fn gt(args: &Args<'_>) -> Result<Tensor> {
    let (there, back) = both(args)?;
    there.logical_and(&back.logical_not()?)
}

fn eq(args: &Args<'_>) -> Result<Tensor> {
    let (there, back) = both(args)?;
    there.logical_and(&back)
}

fn ne(args: &Args<'_>) -> Result<Tensor> {
    super::eq::DEF.run(&[args.get(0), args.get(1)])?.logical_not()
}

fn isnan(args: &Args<'_>) -> Result<Tensor> {
    ne::DEF.run(&[args.get(0), args.get(0)])
}

fn logical_not(args: &Args<'_>) -> Result<Tensor> {
    choose(&truth(args, 0)?, Arg::Bool(false), Arg::Bool(true))
}

fn logical_and(args: &Args<'_>) -> Result<Tensor> {
    choose(&truth(args, 0)?, (&truth(args, 1)?).into(), Arg::Bool(false))
}

fn logical_or(args: &Args<'_>) -> Result<Tensor> {
    choose(&truth(args, 0)?, Arg::Bool(true), (&truth(args, 1)?).into())
}

fn logical_xor(args: &Args<'_>) -> Result<Tensor> {
    let other = truth(args, 1)?;
    choose(&truth(args, 0)?, (&other.logical_not()?).into(), (&other).into())
}

fn addcmul(args: &Args<'_>) -> Result<Tensor> {
    let [own, a, b] = [0, 1, 2].map(|i| Operand::wide(args, i));
    let product = mul::DEF.run(&[a?.arg(), b?.arg()])?;
    let made = add::DEF.run(&[own?.arg(), (&product).into(), args.get(3)])?;
    cast(made, args.promote(FIRST_THREE)?)
}

fn addcdiv(args: &Args<'_>) -> Result<Tensor> {
    let [own, a, b] = [0, 1, 2].map(|i| Operand::wide(args, i));
    let quotient = div::DEF.run(&[a?.arg(), b?.arg(), Arg::None])?;
    let made = add::DEF.run(&[own?.arg(), (&quotient).into(), args.get(3)])?;
    cast(made, args.promote(FIRST_THREE)?)
}

/// `1 + exp(-x)`
fn denominator(x: &Tensor) -> Result<Tensor> {
    x.neg()?.exp()?.add(1)
}

fn sigmoid(args: &Args<'_>) -> Result<Tensor> {
    let below = denominator(&real(args, 0)?)?;
    narrowed(args, 0b1, div::DEF.run(&[Arg::Int(1), (&below).into(), Arg::None])?)
}

fn silu(args: &Args<'_>) -> Result<Tensor> {
    let x = real(args, 0)?;
    narrowed(args, 0b1, x.div(&denominator(&x)?)?)
}

fn softplus(args: &Args<'_>) -> Result<Tensor> {
    let x = real(args, 0)?;
    let scaled = x.mul(args.get(1))?;
    // The exponent is not above 0, so the exponential is finite.
    let soft = scaled.abs()?.neg()?.exp()?.log1p()?.add(&scaled.maximum(0)?)?.div(args.get(1))?;
    narrowed(args, 0b1, choose(&scaled.gt(args.get(2))?, (&x).into(), (&soft).into())?)
}

/// `sigmoid(x) sigmoid(-x)`, which is accurate on both sides of 0, unlike `sigmoid(x) (1 - sigmoid(x))`.
fn sigmoid_slope(x: &Tensor) -> Result<Tensor> {
    x.sigmoid()?.mul(&x.neg()?.sigmoid()?)
}

fn sigmoid_backward(args: &Args<'_>) -> Result<Tensor> {
    let (grad, x) = (real(args, 0)?, real(args, 1)?);
    narrowed(args, FIRST_TWO, grad.mul(&sigmoid_slope(&x)?)?)
}

/// `1 / cosh(x)^2` is four times the derivative of the sigmoid at `2x`.
fn tanh_backward(args: &Args<'_>) -> Result<Tensor> {
    let (grad, x) = (real(args, 0)?, real(args, 1)?);
    narrowed(args, FIRST_TWO, grad.mul(&sigmoid_slope(&x.mul(2)?)?.mul(4)?)?)
}

fn silu_backward(args: &Args<'_>) -> Result<Tensor> {
    let (grad, x) = (real(args, 0)?, real(args, 1)?);
    let s = x.sigmoid()?;
    let slope = s.rsub(1)?.mul(&x)?.add(1)?.mul(&s)?;
    narrowed(args, FIRST_TWO, grad.mul(&slope)?)
}

fn softplus_backward(args: &Args<'_>) -> Result<Tensor> {
    let (grad, x) = (real(args, 0)?, real(args, 1)?.mul(args.get(2))?);
    let made = choose(&x.gt(args.get(3))?, (&grad).into(), (&grad.mul(&x.sigmoid()?)?).into())?;
    narrowed(args, FIRST_TWO, made)
}

fn hardswish_backward(args: &Args<'_>) -> Result<Tensor> {
    let (grad, x) = (real(args, 0)?, real(args, 1)?);
    let middle = grad.mul(&x.mul(2)?.add(3)?.mul(1.0 / 6.0)?)?;
    let upper = choose(&x.ge(3)?, (&grad).into(), (&middle).into())?;
    narrowed(args, FIRST_TWO, choose(&x.le(-3)?, Arg::Int(0), (&upper).into())?)
}

fn softshrink_backward(args: &Args<'_>) -> Result<Tensor> {
    let (grad, x, lambd) = (real(args, 0)?, real(args, 1)?, args.float(2)?);
    // With a `lambd` of 0 the function is the identity, also at 0: the bound -1 makes the condition false for every number.
    let bound = if lambd == 0.0 { -1.0 } else { lambd };
    let inside = x.le(bound)?.logical_and(&x.ge(-bound)?)?;
    narrowed(args, FIRST_TWO, choose(&inside, Arg::Int(0), (&grad).into())?)
}

/// `sqrt(2 / pi)` and the cubic coefficient of the tanh approximation of `gelu`.
const APPROXIMATION: (f64, f64) = (FRAC_2_SQRT_PI * FRAC_1_SQRT_2, 0.044715);

/// The cumulative distribution function of the standard normal distribution, exact or approximated: `(1 + tanh(u)) / 2`,
/// computed as `sigmoid(2 u)`, since the sum would cancel in the lower tail.
fn share(x: &Tensor, approximate: &str) -> Result<Tensor> {
    if approximate == "tanh" {
        let (k, c) = APPROXIMATION;
        return x.mul(x)?.mul(2.0 * k * c)?.add(2.0 * k)?.mul(x)?.sigmoid();
    }
    x.mul(FRAC_1_SQRT_2)?.erf()?.add(1)?.mul(0.5)
}

fn gelu(args: &Args<'_>) -> Result<Tensor> {
    let x = real(args, 0)?;
    narrowed(args, 0b1, x.mul(&share(&x, args.str(1)?)?)?)
}

fn gelu_backward(args: &Args<'_>) -> Result<Tensor> {
    // Beyond the bounds the slope is 0 or 1, and 0 would be multiplied by a square that overflows.
    let (grad, x, approximate) = (real(args, 0)?, real(args, 1)?.clamp(-40, 40)?, args.str(2)?);
    let square = x.square()?;
    // `Φ(x) + x Φ'(x)`.
    let slope = if approximate == "tanh" {
        let (k, c) = APPROXIMATION;
        let s = share(&x, approximate)?;
        let inner = square.mul(6.0 * k * c)?.add(2.0 * k)?.mul(&x)?;
        s.add(&inner.mul(&s.rsub(1)?.mul(&s)?)?)?
    } else {
        // `Φ(-a)` is the density times the Mills ratio, so the difference of the ratio and `a` is accurate where `Φ(a)` rounds
        // to 1.
        let density = square.mul(-0.5)?.exp()?.mul(0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2)?;
        let a = x.abs()?;
        let below = density.mul(&mills_ratio(&a)?.sub(&a)?)?;
        choose(&x.ge(0)?, (&below.rsub(1)?).into(), (&below).into())?
    };
    narrowed(args, FIRST_TWO, grad.mul(&slope)?)
}

/// The Mills ratio of the standard normal distribution: `Φ(-a)` over the density at `a`, for `a` of 0 or more.
fn mills_ratio(a: &Tensor) -> Result<Tensor> {
    let r = div::DEF.run(&[Arg::Int(1), (&a.add(4)?).into(), Arg::None])?;
    let t = r.mul(-8)?.add(1)?;
    let coefficients = if a.dtype() == DType::F64 { &mills::WIDE[..] } else { &mills::NARROW };
    let sum = |sum: Tensor, c: &f64| sum.mul(&t)?.add(*c);
    coefficients.iter().rev().try_fold(t.mul(0)?, sum)?.mul(&r)
}
