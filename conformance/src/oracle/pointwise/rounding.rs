//! Unary functions that preserve the dtype.

use super::{each, number, unknown};
use crate::array::Number;
use crate::oracle::pointwise::Outcome;
use crate::oracle::{Family, Inputs};
use keyway::DType;

/// -1, 0 or 1 by the sign; 0 for NaN. A bool is unchanged.
fn sign(inputs: &Inputs) -> Outcome {
    let a = inputs.array(0)?;
    each([a], a.dtype, |[v]| match v {
        Number::Float(v) => Ok(Number::Float(f64::from(i8::from(v > 0.0) - i8::from(v < 0.0)))),
        Number::Int(v) => Ok(Number::Int(v.signum())),
        other => Ok(other),
    })
}

/// Times itself; bool as i64.
fn square(inputs: &Inputs) -> Outcome {
    let a = inputs.array(0)?;
    let dtype = if a.dtype == DType::BOOL { DType::I64 } else { a.dtype };
    each([&a.cast(dtype)], dtype, |[v]| match v {
        Number::Float(v) => Ok(Number::Float(v * v)),
        Number::Int(v) => Ok(Number::Int(v.wrapping_mul(v))),
        _ => unknown("it takes numbers"),
    })
}

/// The ops of this family.
pub const ALL: Family = &[
    ("abs", |i| number(i, f64::abs, i128::abs)),
    ("ceil", |i| number(i, f64::ceil, |v| v)),
    ("floor", |i| number(i, f64::floor, |v| v)),
    ("neg", |i| number(i, |v| -v, |v| -v)),
    ("relu", |i| number(i, |v| if v < 0.0 { 0.0 } else { v }, |v| v.max(0))),
    ("round", |i| number(i, f64::round_ties_even, |v| v)),
    ("sign", sign),
    ("square", square),
    ("trunc", |i| number(i, f64::trunc, |v| v)),
];

#[cfg(test)]
mod tests {
    use super::super::tests::{floats, ints};
    use keyway::DType;

    #[test]
    fn ties_go_to_the_even_number() {
        assert_eq!(floats("round", &[&[0.5, 1.5, 2.5, -0.5, -1.5]], &[]), [0.0, 2.0, 2.0, 0.0, -2.0]);
        assert_eq!(floats("floor", &[&[-0.5, 1.5]], &[]), [-1.0, 1.0]);
        assert_eq!(floats("trunc", &[&[-1.5, 1.5]], &[]), [-1.0, 1.0]);
        assert!(floats("ceil", &[&[-0.5]], &[])[0].is_sign_negative());
    }

    #[test]
    fn integers_wrap() {
        assert_eq!(ints("abs", DType::I8, &[&[-128, -3]], &[]), Ok(vec![-128, 3]));
        assert_eq!(ints("neg", DType::U8, &[&[1, 0]], &[]), Ok(vec![255, 0]));
        assert_eq!(ints("square", DType::U64, &[&[u64::MAX.into()]], &[]), Ok(vec![1]));
        assert_eq!(ints("sign", DType::I16, &[&[-7, 0, 7]], &[]), Ok(vec![-1, 0, 1]));
    }

    #[test]
    fn not_a_number() {
        assert_eq!(floats("sign", &[&[f64::NAN, f64::NEG_INFINITY]], &[]), [0.0, -1.0]);
        assert!(floats("relu", &[&[f64::NAN]], &[])[0].is_nan());
        assert!(floats("abs", &[&[f64::NAN]], &[])[0].is_nan());
    }
}
