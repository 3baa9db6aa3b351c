//! Elementwise ops. The host has broadcast and cast the arguments, and chosen the output's strides.

use super::kernel;
use crate::arena::Cell;
use crate::operand::{map1, map2, map3};
use keyway_sdk::author::{Call, Error, Int, Real};

/// Functions that the SDK's `Real` lacks.
trait Math: Real + Cell {
    fn erf(self) -> Self;
    fn power(self, exponent: Self) -> Self;
}

impl Math for f32 {
    fn erf(self) -> f32 {
        libm::erff(self)
    }
    fn power(self, exponent: f32) -> f32 {
        self.powf(exponent)
    }
}

impl Math for f64 {
    fn erf(self) -> f64 {
        libm::erf(self)
    }
    fn power(self, exponent: f64) -> f64 {
        self.powf(exponent)
    }
}

fn exp<T: Math>(call: &Call<'_>) -> Result<(), Error> {
    map1(call, 0, |x: T| x.exp())
}

fn log<T: Math>(call: &Call<'_>) -> Result<(), Error> {
    map1(call, 0, |x: T| x.ln())
}

fn sqrt<T: Math>(call: &Call<'_>) -> Result<(), Error> {
    map1(call, 0, |x: T| x.sqrt())
}

fn tanh<T: Math>(call: &Call<'_>) -> Result<(), Error> {
    map1(call, 0, |x: T| x.tanh())
}

fn erf<T: Math>(call: &Call<'_>) -> Result<(), Error> {
    map1(call, 0, |x: T| x.erf())
}

fn pow<T: Math>(call: &Call<'_>) -> Result<(), Error> {
    map2(call, |x: T, exponent: T| x.power(exponent))
}

/// `self + alpha * other`
fn add<T: Math>(call: &Call<'_>) -> Result<(), Error> {
    let alpha: T = call.scalar(2)?;
    map2(call, |a: T, b: T| a + alpha * b)
}

fn add_int<T: Int + Cell>(call: &Call<'_>) -> Result<(), Error> {
    let alpha: T = call.scalar(2)?;
    map2(call, |a: T, b: T| a.wrapping_add(alpha.wrapping_mul(b)))
}

fn mul<T: Math>(call: &Call<'_>) -> Result<(), Error> {
    map2(call, |a: T, b: T| a * b)
}

fn mul_int<T: Int + Cell>(call: &Call<'_>) -> Result<(), Error> {
    map2(call, |a: T, b: T| a.wrapping_mul(b))
}

fn div<T: Math>(call: &Call<'_>) -> Result<(), Error> {
    if call.is_none(2)? {
        return map2(call, |a: T, b: T| a / b);
    }
    let rounded = if call.str(2)? == "floor" { floor_quotient } else { |a: f64, b: f64| (a / b).trunc() };
    map2(call, |a: T, b: T| T::from_f64(rounded(a.to_f64(), b.to_f64())))
}

/// The quotient, rounded towards negative infinity: exactly, although `a / b` may round up to the next integer.
fn floor_quotient(a: f64, b: f64) -> f64 {
    let (quotient, rest) = (a / b, a % b);
    if b == 0.0 {
        return quotient;
    }
    let below = rest != 0.0 && (rest < 0.0) != (b < 0.0);
    // The quotient is an integer up to one rounding, so the nearest integer is exact.
    let near = ((a - rest) / b - f64::from(u8::from(below))).round();
    if near == 0.0 { 0.0f64.copysign(quotient) } else { near }
}

/// NaN if either is NaN; only NaN differs from itself.
#[allow(clippy::eq_op)]
fn maximum<T: Cell>(call: &Call<'_>) -> Result<(), Error> {
    map2(call, |a: T, b: T| if a > b || a != a { a } else { b })
}

fn ge<T: Cell>(call: &Call<'_>) -> Result<(), Error> {
    map2(call, |a: T, b: T| a >= b)
}

fn choose<T: Cell>(call: &Call<'_>) -> Result<(), Error> {
    map3(call, |condition: bool, a: T, b: T| if condition { a } else { b })
}

/// Interpolates from the nearer end, so that both ends are exact.
fn lerp<T: Math>(call: &Call<'_>) -> Result<(), Error> {
    map3(call, |a: T, b: T, weight: T| {
        let span = b - a;
        if weight.abs() < T::from_f64(0.5) { a + weight * span } else { b - span * (T::ONE - weight) }
    })
}

kernel!("exp", "T>T", [f32 => exp::<f32>, f64 => exp::<f64>]);
kernel!("log", "T>T", [f32 => log::<f32>, f64 => log::<f64>]);
kernel!("sqrt", "T>T", [f32 => sqrt::<f32>, f64 => sqrt::<f64>]);
kernel!("tanh", "T>T", [f32 => tanh::<f32>, f64 => tanh::<f64>]);
kernel!("erf", "T>T", [f32 => erf::<f32>, f64 => erf::<f64>]);
kernel!("pow", "TT>T", [f32 => pow::<f32>, f64 => pow::<f64>]);
kernel!("add", "TTs>T", [f32 => add::<f32>, f64 => add::<f64>, i64 => add_int::<i64>]);
kernel!("mul", "TT>T", [f32 => mul::<f32>, f64 => mul::<f64>, i64 => mul_int::<i64>]);
kernel!("div", "TTS>T", [f32 => div::<f32>, f64 => div::<f64>]);
kernel!("maximum", "TT>T", [f32 => maximum::<f32>, f64 => maximum::<f64>, i64 => maximum::<i64>]);
kernel!("ge", "TT>T", [f32 => ge::<f32>, f64 => ge::<f64>, i64 => ge::<i64>, bool => ge::<bool>]);
kernel!("where", "TTT>T", [f32 => choose::<f32>, f64 => choose::<f64>, i64 => choose::<i64>, bool => choose::<bool>]);
kernel!("lerp", "TTT>T", [f32 => lerp::<f32>, f64 => lerp::<f64>]);
