//! Activation functions, and the fused backward passes of the most frequent ones in training.
//!
//! `x` is clamped from below where the function has reached its limit 0, so that minus infinity times 0 is not NaN.

use super::exponential::{Exp, Expm1, Log1p};
use super::number::{Apply, Number, map_real, map_real2, name_functions, real_functions};
use crate::math;
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};

real_functions! {
    "sigmoid" Sigmoid Medium (math::sigmoid_f32, math::sigmoid_f64);
    "relu" Relu Cheap (|x: f32| if x <= 0.0 { 0.0 } else { x }, |x: f64| if x <= 0.0 { 0.0 } else { x });
}

#[inline(always)]
fn at_least<R: Real>(x: R, low: f64) -> R {
    let low = R::from_f64(low);
    if x < low { low } else { x }
}

#[inline(always)]
fn at_most<R: Real>(x: R, high: f64) -> R {
    let high = R::from_f64(high);
    if x > high { high } else { x }
}

name_functions! {
    /// The normal cumulative distribution function at `x`; any value for NaN.
    NormalShare (math::normal_f32, math::normal_f64);
    /// The derivative of `gelu` that uses the normal distribution.
    GeluSlope (math::gelu_slope_f32, math::gelu_slope_f64);
}

/// Twice the argument of `tanh` in the approximate `gelu`, and its derivative. `(1 + tanh(u)) / 2 = sigmoid(2u)`, which
/// takes one exponential and is accurate where it is small.
#[inline(always)]
fn tanh_argument<R: Real>(x: R) -> (R, R) {
    const SCALE: f64 = 2.0 * 0.797_884_560_802_865_4;
    const CUBE: f64 = 0.044715;
    let z = x * x;
    (
        x * (R::from_f64(SCALE) + R::from_f64(SCALE * CUBE) * z),
        R::from_f64(SCALE) + R::from_f64(3.0 * SCALE * CUBE) * z,
    )
}

/// Whether argument `index`, `approximate`, is `tanh`.
fn is_tanh(call: &Call, index: usize) -> Result<bool, Error> {
    Ok(call.str(index)? == "tanh")
}

fn gelu<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    if is_tanh(call, 1)? {
        return map_real::<T>(call, Cost::Medium, |x| {
            let x = at_least(x, -40.0);
            x * tanh_argument(x).0.apply::<Sigmoid>()
        });
    }
    map_real::<T>(call, Cost::Medium, |x| at_least(x, -40.0) * x.apply::<NormalShare>())
}

fn gelu_backward<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    if is_tanh(call, 2)? {
        return map_real2::<T>(call, Cost::Medium, |grad, x| {
            let x = at_most(at_least(x, -40.0), 40.0);
            let (u, slope) = tanh_argument(x);
            let s = u.apply::<Sigmoid>();
            grad * (s + x * s * (T::Acc::ONE - s) * slope)
        });
    }
    map_real2::<T>(call, Cost::Medium, |grad, x| grad * x.apply::<GeluSlope>())
}

fn silu<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    map_real::<T>(call, Cost::Medium, |x| at_least(x, -800.0) * x.apply::<Sigmoid>())
}

fn silu_backward<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    map_real2::<T>(call, Cost::Medium, |grad, x| {
        let x = at_most(at_least(x, -800.0), 800.0);
        let s = x.apply::<Sigmoid>();
        grad * s * (T::Acc::ONE + x * (T::Acc::ONE - s))
    })
}

/// The derivative of the logistic function at `x` and `-x`: `e / (1 + e)^2` with `e = e^-|x|`. A difference from 1 would
/// cancel far from 0.
#[inline(always)]
fn sigmoid_slope<R: Apply>(x: R) -> R {
    let e = (-x.abs()).apply::<Exp>();
    let share = R::ONE / (R::ONE + e);
    e * share * share
}

fn sigmoid_backward<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    map_real2::<T>(call, Cost::Medium, |grad, x| grad * sigmoid_slope(x))
}

/// `1 / cosh(x)^2`
fn tanh_backward<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    let four = T::Acc::from_f64(4.0);
    map_real2::<T>(call, Cost::Medium, move |grad, x| grad * (four * sigmoid_slope(x + x)))
}

fn relu_backward<T: Float>(call: &Call) -> Result<(), Error> {
    map_real2::<T>(call, Cost::Cheap, |grad, y| if y <= T::Acc::ZERO { T::Acc::ZERO } else { grad })
}

fn relu<T: Number + PartialOrd>(call: &Call) -> Result<(), Error> {
    let zero = T::default();
    call.map1(Cost::Cheap, |x: T| if x <= zero { zero } else { x })
}

fn leaky_relu<T: Float>(call: &Call) -> Result<(), Error> {
    let slope: T::Acc = call.scalar(1)?;
    // The slope is read for each element, used or not: conditional reads would become gathers.
    map_real::<T>(call, Cost::Cheap, move |x| {
        let below = x * slope;
        if x > T::Acc::ZERO { x } else { below }
    })
}

fn elu<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    let alpha: T::Acc = call.scalar(1)?;
    map_real::<T>(call, Cost::Medium, move |x| {
        let below = alpha * x.apply::<Expm1>();
        if x < T::Acc::ZERO { below } else { x }
    })
}

fn softplus<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    let (beta, threshold): (T::Acc, T::Acc) = (call.scalar(1)?, call.scalar(2)?);
    map_real::<T>(call, Cost::Medium, |x| {
        let scaled = x * beta;
        // The argument of the exponential is at most 0, so that the result is finite.
        let soft = (at_least(scaled, 0.0) + (-scaled.abs()).apply::<Exp>().apply::<Log1p>()) / beta;
        if scaled > threshold { x } else { soft }
    })
}

fn hardswish<T: Float>(call: &Call) -> Result<(), Error> {
    let (three, six) = (T::Acc::from_f64(3.0), T::Acc::from_f64(6.0));
    map_real::<T>(call, Cost::Cheap, |x| {
        let x = at_least(x, -3.0);
        x * at_most(x + three, 6.0) / six
    })
}

fn softplus_backward<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    let (beta, threshold): (T::Acc, T::Acc) = (call.scalar(2)?, call.scalar(3)?);
    map_real2::<T>(call, Cost::Medium, move |grad, x| {
        let x = x * beta;
        let soft = grad * x.apply::<Sigmoid>();
        if x > threshold { grad } else { soft }
    })
}

fn hardswish_backward<T: Float>(call: &Call) -> Result<(), Error> {
    let (three, sixth) = (T::Acc::from_f64(3.0), T::Acc::from_f64(1.0 / 6.0));
    map_real2::<T>(call, Cost::Cheap, move |grad, x| {
        let middle = grad * ((x + x + three) * sixth);
        let upper = if x >= three { grad } else { middle };
        if x <= -three { T::Acc::ZERO } else { upper }
    })
}

fn softshrink<T: Float>(call: &Call) -> Result<(), Error> {
    let lambd: T::Acc = call.scalar(1)?;
    map_real::<T>(call, Cost::Cheap, move |x| {
        // A product with 0, so that NaN propagates.
        let (above, below, inside) = (x - lambd, x + lambd, x * T::Acc::ZERO);
        let rest = if x < -lambd { below } else { inside };
        if x > lambd { above } else { rest }
    })
}

fn softshrink_backward<T: Float>(call: &Call) -> Result<(), Error> {
    let lambd: T::Acc = call.scalar(2)?;
    // With `lambd` 0 every gradient passes, also at 0: no value is both at least 1 and at most -1.
    let bound = if lambd == T::Acc::ZERO { -T::Acc::ONE } else { lambd };
    map_real2::<T>(
        call,
        Cost::Cheap,
        move |grad, x| {
            if x <= bound && x >= -bound { T::Acc::ZERO } else { grad }
        },
    )
}

kernel!("relu", "T>T", relu, [i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("leaky_relu", "Ts>T", leaky_relu, [f32, f64, f16, bf16]);
kernel!("elu", "Ts>T", elu, [f32, f64, f16, bf16]);
kernel!("gelu", "TS>T", gelu, [f32, f64, f16, bf16]);
kernel!("silu", "T>T", silu, [f32, f64, f16, bf16]);
kernel!("softplus", "Tss>T", softplus, [f32, f64, f16, bf16]);
kernel!("hardswish", "T>T", hardswish, [f32, f64, f16, bf16]);
kernel!("softshrink", "Ts>T", softshrink, [f32, f64, f16, bf16]);
kernel!("hardswish_backward", "TT>T", hardswish_backward, [f32, f64, f16, bf16]);
kernel!("softplus_backward", "TTss>T", softplus_backward, [f32, f64, f16, bf16]);
kernel!("softshrink_backward", "TTs>T", softshrink_backward, [f32, f64, f16, bf16]);
kernel!("relu_backward", "TT>T", relu_backward, [f32, f64, f16, bf16]);
kernel!("gelu_backward", "TTS>T", gelu_backward, [f32, f64, f16, bf16]);
kernel!("silu_backward", "TT>T", silu_backward, [f32, f64, f16, bf16]);
kernel!("sigmoid_backward", "TT>T", sigmoid_backward, [f32, f64, f16, bf16]);
kernel!("tanh_backward", "TT>T", tanh_backward, [f32, f64, f16, bf16]);
