//! Binary functions of real values, `isclose`, and `nan_to_num`.

use super::{Outcome, each, float_of, float_unless, leaves_range, real_pairs, real_pairs_of, unknown};
use crate::array::Number;
use crate::oracle::{Family, Inputs, Unknown};
use keyway::DType;

/// Refuses integers and bool.
fn floats(inputs: &Inputs) -> Result<(), Unknown> {
    if inputs.promote(&[0, 1])?.is_float() { Ok(()) } else { unknown("it takes floats") }
}

/// `log(e^x + e^y)`.
fn log_add_exp(x: f64, y: f64) -> f64 {
    if x == y {
        return x + std::f64::consts::LN_2;
    }
    let (more, less) = if x > y { (x, y) } else { (y, x) };
    if x.is_nan() || y.is_nan() { f64::NAN } else { more + (less - more).exp().ln_1p() }
}

/// `x log(y)`, 0 if `x` is 0 and `y` is not NaN.
fn x_log_y(x: f64, y: f64) -> f64 {
    if x == 0.0 && !y.is_nan() { 0.0 } else { x * y.ln() }
}

/// The magnitude of `x` with the sign of `y`. The sign of a NaN is unspecified.
fn copysign(inputs: &Inputs) -> Outcome {
    real_pairs_of(inputs, |_, x, y| float_unless(y.is_nan(), x.copysign(y)))
}

/// Whether two elements are equal or differ by at most `atol + rtol |y|`. The difference of integers is exact. Both results
/// are accepted if rounding decides, or an intermediate value overflows.
fn isclose(inputs: &Inputs) -> Outcome {
    let (rtol, atol, equal_nan) = (inputs.float(2)?, inputs.float(3)?, inputs.bool(4)?);
    if !(rtol >= 0.0 && atol >= 0.0) {
        return unknown("a tolerance is negative");
    }
    let promoted = inputs.promote(&[0, 1])?;
    let dtype = float_of(promoted);
    // Integers are compared by value, as in `eq`.
    let exact = |i| {
        let operand = inputs.operand(i)?;
        Ok::<_, Unknown>(if promoted.is_integer() { operand } else { operand.cast(promoted) })
    };
    let (a, b) = (exact(0)?, exact(1)?);
    let (x, y) = (inputs.operand_in(0, dtype)?, inputs.operand_in(1, dtype)?);
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    each([&a, &b, &x, &y], DType::BOOL, |[a, b, x, y]| {
        let (equal, apart) = match (a, b) {
            (Number::Float(a), Number::Float(b)) => (a == b, None),
            (a, b) => (a.int() == b.int(), Some((a.int() - b.int()).unsigned_abs())),
        };
        let (x, y) = (x.float(), y.float());
        if equal || (equal_nan && x.is_nan() && y.is_nan()) {
            return Ok(Number::Bool(true));
        }
        if let Some(apart) = apart {
            let (apart, bound) = (apart as f64, atol + rtol * b.float().abs());
            let unsure = (apart - bound).abs() <= 1e-14 * bound;
            return Ok(if unsure { Number::Any } else { Number::Bool(apart <= bound) });
        }
        let (distance, bound) = ((x - y).abs(), atol + rtol * y.abs());
        let unsure = (distance - bound).abs() <= 1e-6 * bound;
        if unsure || leaves_range(wide, distance, &[x, y]) || leaves_range(wide, bound, &[y]) {
            return Ok(Number::Any);
        }
        Ok(Number::Bool(distance.is_finite() && distance <= bound))
    })
}

/// The largest finite number of a float dtype.
fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => f64::from(half::f16::MAX),
        DType::BF16 => f64::from(half::bf16::MAX),
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

/// Finite elements unchanged, NaN and infinities replaced.
fn nan_to_num(inputs: &Inputs) -> Outcome {
    let a = inputs.array(0)?;
    let or = |i, usual: f64| if inputs.is_none(i) { Ok(usual) } else { inputs.float(i) };
    let most = largest(a.dtype);
    let (nan, above, below) = (or(1, 0.0)?, or(2, most)?, or(3, -most)?);
    each([a], a.dtype, |[v]| {
        let Number::Float(x) = v else { return Ok(v) };
        let made = match x {
            f64::INFINITY => above,
            f64::NEG_INFINITY => below,
            x if x.is_nan() => nan,
            x => x,
        };
        Ok(Number::Float(made).cast(a.dtype))
    })
}

/// The neighbour of `x` towards `y` among the values of a dtype, which are ordered like their bits.
fn next_after(dtype: DType, x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    if x == y {
        return y;
    }
    let upward = x < y;
    let step = |up: f64, down: f64| if upward { up } else { down };
    // For f16 and bf16 the index in that order, counted from 0; a negative value has the bits of its magnitude and a sign.
    let half = |bits: u16, value: fn(u16) -> f64| {
        let rank =
            i32::from(bits & 0x7fff) * if bits >> 15 == 0 { 1 } else { -1 } + if upward { 1 } else { -1 };
        let size = value(rank.unsigned_abs() as u16);
        if rank < 0 || (rank == 0 && x < 0.0) { -size } else { size }
    };
    match dtype {
        DType::F16 => half(half::f16::from_f64(x).to_bits(), |bits| half::f16::from_bits(bits).to_f64()),
        DType::BF16 => half(half::bf16::from_f64(x).to_bits(), |bits| half::bf16::from_bits(bits).to_f64()),
        DType::F32 => step(f64::from((x as f32).next_up()), f64::from((x as f32).next_down())),
        _ => step(x.next_up(), x.next_down()),
    }
}

/// The ops of this family.
pub const ALL: Family = &[
    ("copysign", copysign),
    ("hypot", |i| floats(i).and_then(|()| real_pairs(i, f64::hypot))),
    ("isclose", isclose),
    ("logaddexp", |i| floats(i).and_then(|()| real_pairs(i, log_add_exp))),
    ("nan_to_num", nan_to_num),
    ("nextafter", |i| {
        floats(i).and_then(|()| real_pairs_of(i, |dtype, x, y| Number::Float(next_after(dtype, x, y))))
    }),
    ("xlogy", |i| real_pairs(i, x_log_y)),
];

#[cfg(test)]
mod tests {
    use super::super::tests::{floats, ints};
    use super::*;
    use crate::oracle::Value;

    const INF: f64 = f64::INFINITY;

    #[test]
    fn infinities_and_zeros() {
        assert_eq!(floats("logaddexp", &[&[INF, -INF, -INF], &[INF, -INF, 2.0]], &[]), [INF, -INF, 2.0]);
        assert_eq!(floats("logaddexp", &[&[0.0, 1000.0], &[0.0, 0.0]], &[]), [2f64.ln(), 1000.0]);
        assert_eq!(floats("hypot", &[&[3.0, INF, 1e308], &[-4.0, f64::NAN, 0.0]], &[]), [5.0, INF, 1e308]);
        assert_eq!(floats("xlogy", &[&[0.0, 0.0, 2.0], &[0.0, -1.0, 1.0]], &[]), [0.0, 0.0, 0.0]);
        assert!(floats("xlogy", &[&[0.0], &[f64::NAN]], &[])[0].is_nan());
        let signed = floats("copysign", &[&[1.0, -2.0, 0.0], &[-0.0, 0.0, -3.0]], &[]);
        assert_eq!((&signed[..2], signed[2].is_sign_negative()), (&[-1.0, 2.0][..], true));
        let made = floats("nan_to_num", &[&[f64::NAN, INF, -INF, 2.0]], &[]);
        assert_eq!(made, [0.0, f64::MAX, -f64::MAX, 2.0]);
    }

    #[test]
    fn neighbours_among_numbers_of_a_dtype() {
        let of = next_after;
        assert_eq!(of(DType::F16, 1.0, 2.0), 1.0 + 2f64.powi(-10));
        assert_eq!(of(DType::F16, 1.0, -INF), 1.0 - 2f64.powi(-11));
        assert_eq!(of(DType::BF16, -1.0, -2.0), -1.0 - 2f64.powi(-7));
        assert_eq!((of(DType::F16, 65504.0, INF), of(DType::F16, INF, 0.0)), (INF, 65504.0));
        assert_eq!(
            (of(DType::F32, -0.0, 1.0), of(DType::F16, 0.0, -1.0)),
            (2f64.powi(-149), -(2f64.powi(-24)))
        );
        assert!(
            of(DType::F16, -(2f64.powi(-24)), 0.0).is_sign_negative()
                && of(DType::F64, 0.0, -0.0).is_sign_negative()
        );
    }

    #[test]
    fn near_ones() {
        let with = |nan| [Value::Float(0.1), Value::Float(0.5), Value::Bool(nan)];
        let pair: [&[f64]; 2] = [&[INF, INF, f64::NAN, 1.0, 1.0], &[INF, -INF, f64::NAN, 1.4, 2.0]];
        assert_eq!(floats("isclose", &pair, &with(false)), [1.0, 0.0, 0.0, 1.0, 0.0]);
        assert_eq!(floats("isclose", &pair, &with(true))[2], 1.0);
        let whole: [&[i128]; 2] = [&[10, 10], &[11, 12]];
        assert_eq!(ints("isclose", DType::I64, &whole, &with(false)), Ok(vec![1, 0]));
    }
}
