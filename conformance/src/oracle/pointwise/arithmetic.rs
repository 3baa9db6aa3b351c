//! Arithmetic of two and three operands, broadcast and promoted.

use super::{
    Outcome, each, float_unless, leaves_range, number_bounds, numbers, real_pairs, real_pairs_of, unknown,
};
use crate::array::{Number, wrapped};
use crate::oracle::{Family, Inputs, Unknown};
use keyway::DType;

/// A scale as an integer; a fraction is no valid scale of integers.
fn whole_scale(scale: Number) -> Result<i128, Unknown> {
    match scale {
        Number::Float(_) => unknown("a float scales no integers"),
        other => Ok(other.int()),
    }
}

/// `self + alpha * other`, or `self - alpha * other` with `less`.
fn scaled_sum(inputs: &Inputs, less: bool) -> Outcome {
    let (dtype, alpha) = (inputs.promote(&[0, 1])?, inputs.number(2)?);
    let (a, b) = (inputs.operand_in(0, dtype)?, inputs.operand_in(1, dtype)?);
    each([&a, &b], dtype, |pair| match pair {
        [Number::Float(x), Number::Float(y)] => {
            let scaled = alpha.float() * y;
            let open = leaves_range(dtype, scaled, &[y]);
            Ok(float_unless(open, if less { x - scaled } else { x + scaled }))
        }
        [Number::Bool(x), Number::Bool(y)] if !less => Ok(Number::Bool(x | (y & (whole_scale(alpha)? != 0)))),
        [Number::Int(x), Number::Int(y)] => {
            let scaled = whole_scale(alpha)?.wrapping_mul(y);
            Ok(Number::Int(if less { x.wrapping_sub(scaled) } else { x.wrapping_add(scaled) }))
        }
        _ => unknown("it takes numbers"),
    })
}

/// The first two arguments, promoted, bool among them.
fn with_bool(
    inputs: &Inputs,
    real: fn(f64, f64) -> f64,
    whole: fn(i128, i128) -> i128,
    truth: fn(bool, bool) -> bool,
) -> Outcome {
    let dtype = inputs.promote(&[0, 1])?;
    let (a, b) = (inputs.operand_in(0, dtype)?, inputs.operand_in(1, dtype)?);
    each([&a, &b], dtype, |pair| match pair {
        // A scalar is not rounded, the result is.
        [Number::Float(x), Number::Float(y)] => Ok(Number::Float(real(x, y)).cast(dtype)),
        [Number::Bool(x), Number::Bool(y)] => Ok(Number::Bool(truth(x, y))),
        [x, y] => Ok(Number::Int(whole(x.int(), y.int()))),
    })
}

/// The larger, the first of two zeros; NaN if either is.
pub fn larger(x: f64, y: f64) -> f64 {
    if y.is_nan() || y > x { y } else { x }
}

/// The smaller, the first of two zeros; NaN if either is.
pub fn smaller(x: f64, y: f64) -> f64 {
    if y.is_nan() || y < x { y } else { x }
}

/// The floor of `x / y`, as Python's `//`: from the remainder, which is exact, and `x / y` itself if `y` is 0.
fn floor_quotient(x: f64, y: f64) -> f64 {
    if y == 0.0 {
        return x / y;
    }
    let rest = x % y;
    let mut quotient = (x - rest) / y;
    if rest != 0.0 && (y < 0.0) != (rest < 0.0) {
        quotient -= 1.0;
    }
    // The quotient is an integer up to rounding.
    if quotient == 0.0 { 0f64.copysign(x / y) } else { quotient.round() }
}

/// The remainder of `x / y`, with the sign of `y`.
fn remainder(x: f64, y: f64) -> f64 {
    let rest = x % y;
    if rest != 0.0 && (y < 0.0) != (rest < 0.0) { rest + y } else { rest }
}

/// An integer division; an error if `y` is 0.
fn divided(x: i128, y: i128, by: fn(i128, i128) -> i128) -> Result<i128, Unknown> {
    if y == 0 { unknown("an integer is divided by zero") } else { Ok(by(x, y)) }
}

fn floor_quotient_whole(x: i128, y: i128) -> i128 {
    let (quotient, rest) = (x / y, x % y);
    if rest != 0 && (rest < 0) != (y < 0) { quotient - 1 } else { quotient }
}

fn remainder_whole(x: i128, y: i128) -> i128 {
    let rest = x % y;
    if rest != 0 && (rest < 0) != (y < 0) { rest + y } else { rest }
}

/// `x / y` truncated towards zero. If the quotient is so near an integer that its rounding to the dtype decides, both
/// integers are accepted.
fn whole_quotient(dtype: DType, x: f64, y: f64) -> Number {
    let quotient = x / y;
    let precision = match dtype {
        DType::F64 => 4e-16,
        DType::F32 => 2e-7,
        DType::F16 => 1e-3,
        _ => 8e-3,
    };
    let unsure = x % y != 0.0 && (quotient - quotient.round()).abs() <= precision * quotient.abs();
    // A large quotient may be off by one and still be within the tolerance.
    float_unless(unsure && quotient.abs() * precision < 1.0, quotient.trunc())
}

fn floor_divide(inputs: &Inputs) -> Outcome {
    numbers(inputs, floor_quotient, |x, y| divided(x, y, floor_quotient_whole))
}

/// `self / other`, rounded by `rounding_mode`; without it, integers and bool become f32.
fn div(inputs: &Inputs) -> Outcome {
    match inputs.optional_str(2)? {
        None => real_pairs(inputs, |x, y| x / y),
        Some("floor") => floor_divide(inputs),
        Some("trunc") if inputs.promote(&[0, 1])?.is_float() => real_pairs_of(inputs, whole_quotient),
        Some("trunc") => numbers(inputs, |x, y| x / y, |x, y| divided(x, y, |x, y| x / y)),
        Some(other) => Err(Unknown(format!("there is no rounding mode `{other}`"))),
    }
}

/// An integer power modulo 2^bits, by repeated squaring.
fn power(base: i128, exponent: i128, dtype: DType) -> Result<i128, Unknown> {
    if exponent < 0 {
        return unknown("an integer to a negative power");
    }
    let (mut square, mut rest, mut result) = (base, exponent, 1);
    while rest > 0 {
        if rest % 2 == 1 {
            result = wrapped(square.wrapping_mul(result), dtype);
        }
        square = wrapped(square.wrapping_mul(square), dtype);
        rest /= 2;
    }
    Ok(result)
}

/// `self^exponent`, by IEEE 754 for floats. A scalar exponent of 1/2 or -1/2 may be computed as a square root, which
/// differs at minus zero and at minus infinity.
fn pow(inputs: &Inputs) -> Outcome {
    let dtype = inputs.promote(&[0, 1])?;
    if dtype.is_float() {
        let root = inputs.float(1).is_ok_and(|exponent| exponent.abs() == 0.5);
        return real_pairs_of(inputs, |_, base, exponent| {
            let end = base == f64::NEG_INFINITY || (base == 0.0 && base.is_sign_negative());
            float_unless(root && end, base.powf(exponent))
        });
    }
    numbers(inputs, f64::powf, |base, exponent| power(base, exponent, dtype))
}

/// Three promoted operands, followed by a number.
fn three(
    inputs: &Inputs,
    real: fn(DType, [f64; 3], f64) -> Number,
    whole: impl Fn(i128, i128, i128, DType) -> Result<i128, Unknown>,
) -> Outcome {
    let (dtype, value) = (inputs.promote(&[0, 1, 2])?, inputs.number(3)?);
    let operand = |i| inputs.operand_in(i, dtype);
    each([&operand(0)?, &operand(1)?, &operand(2)?], dtype, |all| match all {
        [Number::Float(x), Number::Float(y), Number::Float(z)] => Ok(real(dtype, [x, y, z], value.float())),
        [Number::Int(x), Number::Int(y), Number::Int(z)] => {
            let scaled = wrapped(whole_scale(value)?.wrapping_mul(y), dtype);
            whole(x, scaled, z, dtype).map(Number::Int)
        }
        _ => unknown("it takes numbers"),
    })
}

/// `self + value * tensor1 * tensor2`.
fn addcmul(inputs: &Inputs) -> Outcome {
    three(
        inputs,
        |dtype, [x, y, z], value| {
            let open = [value * y, y * z, value * y * z].iter().any(|&v| leaves_range(dtype, v, &[y, z]));
            float_unless(open, x + value * y * z)
        },
        |x, scaled, z, dtype| Ok(x + wrapped(scaled.wrapping_mul(z), dtype)),
    )
}

/// `self + value * tensor1 / tensor2`, of floats.
fn addcdiv(inputs: &Inputs) -> Outcome {
    three(
        inputs,
        |dtype, [x, y, z], value| {
            let quotient =
                z != 0.0 && [y / z, value * y / z].iter().any(|&v| leaves_range(dtype, v, &[y, z]));
            let open = quotient || leaves_range(dtype, value * y, &[y]);
            float_unless(open, x + value * y / z)
        },
        |_, _, _, _| unknown("it takes floats"),
    )
}

/// `self + weight * (end - self)`, computed from `end` if the weight is 1/2 or more, so that a weight of 1 returns `end`
/// itself.
fn lerp(inputs: &Inputs) -> Outcome {
    let dtype = inputs.promote(&[0, 1, 2])?;
    if !inputs.promote(&[0, 1])?.is_float() {
        return unknown("it takes floats");
    }
    let operand = |i| inputs.operand_in(i, dtype);
    each([&operand(0)?, &operand(1)?, &operand(2)?], dtype, |[start, end, weight]| {
        let (start, end, weight) = (start.float(), end.float(), weight.float());
        let from_start = weight.abs() < 0.5;
        let span = end - start;
        let part = span * if from_start { weight } else { 1.0 - weight };
        let open = [span, part].iter().any(|&v| leaves_range(dtype, v, &[start, end, weight]));
        Ok(float_unless(open, if from_start { start + part } else { end - part }))
    })
}

/// Clamps each element; returns the upper bound if the bounds cross. NaN, of an element or of a bound, propagates.
fn clamp(inputs: &Inputs) -> Outcome {
    let dtype = inputs.promote(&[0, 1, 2])?;
    let low = number_bounds(inputs, 1, dtype, false)?;
    let high = number_bounds(inputs, 2, dtype, true)?;
    if low.is_none() && high.is_none() {
        return unknown("there is no bound");
    }
    each([&inputs.array(0)?.cast(dtype)], dtype, |[v]| match v {
        Number::Float(v) => {
            let raised = low.map_or(v, |low| larger(v, low.float()));
            Ok(Number::Float(high.map_or(raised, |high| smaller(raised, high.float()))))
        }
        Number::Int(v) => {
            let raised = low.map_or(v, |low| v.max(low.int()));
            Ok(Number::Int(high.map_or(raised, |high| raised.min(high.int()))))
        }
        _ => unknown("it takes numbers"),
    })
}

/// The ops of this family.
pub const ALL: Family = &[
    ("add", |i| scaled_sum(i, false)),
    ("addcdiv", addcdiv),
    ("addcmul", addcmul),
    ("atan2", |i| real_pairs(i, f64::atan2)),
    ("clamp", clamp),
    ("div", div),
    ("floor_divide", floor_divide),
    ("fmod", |i| numbers(i, |x, y| x % y, |x, y| divided(x, y, |x, y| x % y))),
    ("lerp", lerp),
    ("maximum", |i| with_bool(i, larger, i128::max, |x, y| x | y)),
    ("minimum", |i| with_bool(i, smaller, i128::min, |x, y| x & y)),
    ("mul", |i| with_bool(i, |x, y| x * y, i128::wrapping_mul, |x, y| x & y)),
    ("pow", pow),
    ("remainder", |i| numbers(i, remainder, |x, y| divided(x, y, remainder_whole))),
    ("sub", |i| scaled_sum(i, true)),
];

#[cfg(test)]
mod tests {
    use super::super::tests::{floats, ints};
    use crate::oracle::Value;
    use keyway::DType;

    const INF: f64 = f64::INFINITY;

    #[test]
    fn integers_wrap() {
        let one = [Value::Int(1)];
        assert_eq!(ints("add", DType::U8, &[&[250], &[10]], &one), Ok(vec![4]));
        assert_eq!(ints("sub", DType::U8, &[&[1], &[2]], &one), Ok(vec![255]));
        assert_eq!(ints("mul", DType::U64, &[&[u64::MAX.into()], &[u64::MAX.into()]], &[]), Ok(vec![1]));
        let three = [Value::Int(3)];
        assert_eq!(ints("addcmul", DType::I8, &[&[100], &[10], &[1]], &three), Ok(vec![-126]));
    }

    #[test]
    fn quotients_and_remainders_have_the_signs_of_their_definitions() {
        let (a, b) = ([-7, -7, 7, 7], [2, -2, 2, -2]);
        let pair: [&[i128]; 2] = [&a, &b];
        let mode = |m: &str| [Value::Str(m.into())];
        assert_eq!(ints("div", DType::I32, &pair, &mode("floor")), Ok(vec![-4, 3, 3, -4]));
        assert_eq!(ints("div", DType::I32, &pair, &mode("trunc")), Ok(vec![-3, 3, 3, -3]));
        assert_eq!(ints("remainder", DType::I32, &pair, &[]), Ok(vec![1, -1, 1, -1]));
        assert_eq!(ints("fmod", DType::I32, &pair, &[]), Ok(vec![-1, -1, 1, 1]));
        assert_eq!(ints("floor_divide", DType::I8, &[&[-128], &[-1]], &[]), Ok(vec![-128]));
        assert!(ints("fmod", DType::I32, &[&[1], &[0]], &[]).is_err());
        let (a, b): ([f64; 5], [f64; 5]) = ([-7.5, 7.5, 1.0, -1.0, 6.0], [2.0, -2.0, INF, INF, 0.1]);
        assert_eq!(floats("floor_divide", &[&a, &b], &[]), [-4.0, -4.0, 0.0, -1.0, 59.0]);
        assert_eq!(floats("remainder", &[&a[..4], &b[..4]], &[]), [0.5, -0.5, 1.0, INF]);
        assert_eq!(floats("fmod", &[&a[..4], &b[..4]], &[]), [-1.5, 1.5, 1.0, -1.0]);
        assert_eq!(floats("floor_divide", &[&[1.0, -1.0], &[0.0, 0.0]], &[]), [INF, -INF]);
    }

    #[test]
    fn powers() {
        assert_eq!(ints("pow", DType::I8, &[&[3, -2, 0, 2], &[5, 7, 0, 9]], &[]), Ok(vec![-13, -128, 1, 0]));
        assert!(ints("pow", DType::I8, &[&[3], &[-1]], &[]).is_err());
        assert_eq!(floats("pow", &[&[2.0, 0.0, f64::NAN], &[0.5, 0.0, 0.0]], &[]), [2f64.sqrt(), 1.0, 1.0]);
    }

    #[test]
    fn not_a_number_wins() {
        let nan = f64::NAN;
        for op in ["maximum", "minimum"] {
            assert!(floats(op, &[&[nan, 1.0], &[1.0, nan]], &[]).iter().all(|v| v.is_nan()));
        }
        let bounds = [Value::Float(0.0), Value::Float(1.0)];
        let clamped = floats("clamp", &[&[nan, -1.0, 0.5, 2.0]], &bounds);
        assert!(clamped[0].is_nan());
        assert_eq!(clamped[1..], [0.0, 0.5, 1.0]);
        assert_eq!(floats("clamp", &[&[0.0]], &[Value::Float(2.0), Value::Float(1.0)]), [1.0]);
    }

    #[test]
    fn interpolation_reaches_its_end() {
        assert_eq!(floats("lerp", &[&[0.1, 1.0], &[0.7, 5.0], &[1.0, 0.25]], &[]), [0.7, 2.0]);
    }
}
