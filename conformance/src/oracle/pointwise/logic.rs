//! Comparisons, truth values, bits and selection.

use super::{Outcome, each, unknown};
use crate::array::{Array, Number};
use crate::oracle::{Family, Inputs, Unknown};
use keyway::DType;

/// Two operands, promoted and compared. Integers and bools are compared exactly.
fn compare(inputs: &Inputs, real: fn(&f64, &f64) -> bool, whole: fn(&i128, &i128) -> bool) -> Outcome {
    let dtype = inputs.promote(&[0, 1])?;
    // Integers are compared by value, including those outside of the promoted dtype's range.
    let operand = |i| {
        let operand = inputs.operand(i)?;
        Ok::<Array, Unknown>(if dtype.is_integer() { operand } else { operand.cast(dtype) })
    };
    let (a, b) = (operand(0)?, operand(1)?);
    each([&a, &b], DType::BOOL, |[x, y]| {
        Ok(Number::Bool(if dtype.is_float() {
            real(&x.float(), &y.float())
        } else {
            whole(&x.int(), &y.int())
        }))
    })
}

/// Applies a predicate to each element.
fn test(inputs: &Inputs, has: fn(Number) -> bool) -> Outcome {
    each([inputs.array(0)?], DType::BOOL, |[v]| Ok(Number::Bool(has(v))))
}

/// The truth values of two operands of any dtypes.
fn truths(inputs: &Inputs, both: fn(bool, bool) -> bool) -> Outcome {
    let (a, b) = (inputs.operand(0)?, inputs.operand(1)?);
    each([&a, &b], DType::BOOL, |[x, y]| Ok(Number::Bool(both(x.truth(), y.truth()))))
}

/// Applies a bitwise op to two promoted operands of integers or bool. In two's complement with more bits than the dtype
/// has, `and`, `or` and `xor` are the same for signed and unsigned.
fn bits(inputs: &Inputs, whole: fn(i128, i128) -> i128, truth: fn(bool, bool) -> bool) -> Outcome {
    let dtype = inputs.promote(&[0, 1])?;
    let (a, b) = (inputs.operand(0)?.cast(dtype), inputs.operand(1)?.cast(dtype));
    each([&a, &b], dtype, |pair| match pair {
        [Number::Int(x), Number::Int(y)] => Ok(Number::Int(whole(x, y))),
        [Number::Bool(x), Number::Bool(y)] => Ok(Number::Bool(truth(x, y))),
        _ => unknown("it takes integers or bool"),
    })
}

fn bitwise_not(inputs: &Inputs) -> Outcome {
    let a = inputs.array(0)?;
    each([a], a.dtype, |[v]| match v {
        Number::Int(v) => Ok(Number::Int(!v)),
        Number::Bool(v) => Ok(Number::Bool(!v)),
        _ => unknown("it takes integers or bool"),
    })
}

/// Shifts an integer operand by a second one, promoted; `by` is called with a count from 0 to the number of bits, which
/// represents any count that shifts every bit out.
fn shift(inputs: &Inputs, by: fn(i128, u32) -> i128) -> Outcome {
    let dtype = inputs.promote(&[0, 1])?;
    let width = 8 * dtype.size() as i128;
    let (a, b) = (inputs.operand(0)?.cast(dtype), inputs.operand(1)?.cast(dtype));
    each([&a, &b], dtype, |pair| match pair {
        [Number::Int(x), Number::Int(count)] => {
            let count = if (0..width).contains(&count) { count } else { width };
            Ok(Number::Int(by(x, count as u32)))
        }
        _ => unknown("it takes integers"),
    })
}

/// Applies a function of magnitudes to two promoted integer operands.
fn divisors(inputs: &Inputs, of: fn(i128, i128) -> i128) -> Outcome {
    let dtype = inputs.promote(&[0, 1])?;
    let (a, b) = (inputs.operand(0)?.cast(dtype), inputs.operand(1)?.cast(dtype));
    each([&a, &b], dtype, |pair| match pair {
        [Number::Int(x), Number::Int(y)] => Ok(Number::Int(of(x.abs(), y.abs()))),
        _ => unknown("it takes integers"),
    })
}

/// Euclid's algorithm.
fn greatest_divisor(x: i128, y: i128) -> i128 {
    if y == 0 { x } else { greatest_divisor(y, x % y) }
}

/// `self` where the condition is true, otherwise `other`.
fn select(inputs: &Inputs) -> Outcome {
    let condition = inputs.array(0)?;
    if condition.dtype != DType::BOOL {
        return unknown("the condition is not bool");
    }
    let dtype = inputs.promote(&[1, 2])?;
    let operand = |i| Ok::<Array, Unknown>(inputs.operand(i)?.cast(dtype));
    each([condition, &operand(1)?, &operand(2)?], dtype, |[c, x, y]| Ok(if c.truth() { x } else { y }))
}

/// The ops of this family.
pub const ALL: Family = &[
    ("bitwise_and", |i| bits(i, |x, y| x & y, |x, y| x & y)),
    ("bitwise_left_shift", |i| shift(i, |x, count| x << count)),
    ("bitwise_not", bitwise_not),
    ("bitwise_or", |i| bits(i, |x, y| x | y, |x, y| x | y)),
    ("bitwise_right_shift", |i| shift(i, |x, count| x >> count)),
    ("bitwise_xor", |i| bits(i, |x, y| x ^ y, |x, y| x ^ y)),
    ("eq", |i| compare(i, f64::eq, i128::eq)),
    ("gcd", |i| divisors(i, greatest_divisor)),
    ("ge", |i| compare(i, f64::ge, i128::ge)),
    ("gt", |i| compare(i, f64::gt, i128::gt)),
    ("isfinite", |i| test(i, |v| v.float().is_finite())),
    ("isinf", |i| test(i, |v| v.float().is_infinite())),
    ("isnan", |i| test(i, |v| v.float().is_nan())),
    ("lcm", |i| divisors(i, |x, y| if x == 0 || y == 0 { 0 } else { x / greatest_divisor(x, y) * y })),
    ("le", |i| compare(i, f64::le, i128::le)),
    ("logical_and", |i| truths(i, |x, y| x & y)),
    ("logical_not", |i| test(i, |v| !v.truth())),
    ("logical_or", |i| truths(i, |x, y| x | y)),
    ("logical_xor", |i| truths(i, |x, y| x ^ y)),
    ("lt", |i| compare(i, f64::lt, i128::lt)),
    ("ne", |i| compare(i, f64::ne, i128::ne)),
    ("where", select),
];

#[cfg(test)]
mod tests {
    use super::super::tests::{floats, ints};
    use crate::oracle::Value;
    use keyway::DType;

    #[test]
    fn nan_is_unlike_everything() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let pair: [&[f64]; 2] = [&[nan, 1.0, inf, 0.0], &[nan, nan, inf, -0.0]];
        let with = |op| floats(op, &pair, &[]);
        assert_eq!(with("eq"), [0.0, 0.0, 1.0, 1.0]);
        assert_eq!(with("ne"), [1.0, 1.0, 0.0, 0.0]);
        assert_eq!(with("le"), [0.0, 0.0, 1.0, 1.0]);
        assert_eq!(with("gt"), [0.0; 4]);
        assert_eq!(with("logical_and"), [1.0, 1.0, 1.0, 0.0]);
        assert_eq!(floats("isinf", &pair[..1], &[]), [0.0, 0.0, 1.0, 0.0]);
        assert_eq!(floats("isfinite", &pair[..1], &[]), [0.0, 1.0, 0.0, 1.0]);
    }

    #[test]
    fn integers_are_compared_exactly() {
        let near = (1i128 << 53) + 1;
        assert_eq!(ints("eq", DType::I64, &[&[near], &[near - 1]], &[]), Ok(vec![0]));
        assert_eq!(ints("lt", DType::I64, &[&[near, 7]], &[Value::Int(near as i64)]), Ok(vec![0, 1]));
    }

    #[test]
    fn bits() {
        assert_eq!(ints("bitwise_not", DType::U8, &[&[0, 255]], &[]), Ok(vec![255, 0]));
        assert_eq!(ints("bitwise_not", DType::I8, &[&[0, 127]], &[]), Ok(vec![-1, -128]));
        assert_eq!(ints("bitwise_xor", DType::I8, &[&[-1], &[5]], &[]), Ok(vec![-6]));
        let both: [&[i128]; 2] = [&[12, -18, 0, 0, -128, -128], &[8, 12, -7, 0, 6, 0]];
        assert_eq!(ints("gcd", DType::I8, &both, &[]), Ok(vec![4, 6, 7, 0, 2, -128]));
        assert_eq!(ints("lcm", DType::I8, &both, &[]), Ok(vec![24, 36, 0, 0, -128, 0]));
        let counts: &[i128] = &[1, 7, 8, -1];
        assert_eq!(ints("bitwise_left_shift", DType::I8, &[&[3; 4], counts], &[]), Ok(vec![6, -128, 0, 0]));
        assert_eq!(
            ints("bitwise_right_shift", DType::I8, &[&[-3; 4], counts], &[]),
            Ok(vec![-2, -1, -1, -1])
        );
        assert_eq!(ints("bitwise_right_shift", DType::U64, &[&[u64::MAX.into()], &[63]], &[]), Ok(vec![1]));
    }
}
