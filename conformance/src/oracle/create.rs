//! Ops that overwrite a tensor using its sizes and dtype, and triangles.

use super::pointwise::{Outcome, unknown};
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number, flat, wrapped};
use keyway::DType;

/// `start + i * step` for element `i` in row-major order. For an integer dtype both are rounded towards zero
/// first.
fn arange(inputs: &Inputs) -> Outcome {
    let like = inputs.array(0)?;
    let (start, step) = (inputs.number(1)?, inputs.number(2)?);
    if like.dtype == DType::BOOL {
        return unknown("it makes numbers");
    }
    let sizes = like.sizes.clone();
    Ok(vec![Array::from_fn(like.dtype, sizes, |index| {
        let i = flat(&like.sizes, index);
        if like.dtype.is_float() {
            Number::Float(start.float() + i as f64 * step.float())
        } else {
            Number::Int(wrapped(start.int() + i as i128 * step.int(), like.dtype))
        }
    })])
}

/// Truncates a value towards zero to an integer dtype. Near an integer, where rounding errors decide, either result is
/// accepted, unless the value is exactly that integer.
fn truncated(value: f64, exact: bool, dtype: DType) -> Number {
    let unsure = (value - value.round()).abs() <= 1e-6 * value.abs().max(1.0);
    if unsure && !exact { Number::Any } else { Number::Float(value).cast(dtype) }
}

/// Equally spaced values from `start` to `end`, both included. For an integer dtype both are truncated towards zero first,
/// and so is each value.
fn linspace(inputs: &Inputs) -> Outcome {
    let like = inputs.array(0)?;
    let bound = |i| inputs.float(i).map(|v| if like.dtype.is_float() { v } else { v.trunc() });
    let (start, end) = (bound(1)?, bound(2)?);
    if like.dtype == DType::BOOL {
        return unknown("it makes numbers");
    }
    let last = like.numel().saturating_sub(1);
    let step = if last == 0 { 0.0 } else { (end - start) / last as f64 };
    Ok(vec![Array::from_fn(like.dtype, like.sizes.clone(), |index| {
        let i = flat(&like.sizes, index);
        // From the nearer end, so that both ends are exact.
        let value = if 2 * i <= last { start + step * i as f64 } else { end - step * (last - i) as f64 };
        if like.dtype.is_float() {
            Number::Float(value)
        } else {
            truncated(value, step.fract() == 0.0 || i == 0 || i == last, like.dtype)
        }
    })])
}

/// A number as an element of a dtype.
fn of(value: u8, dtype: DType) -> Number {
    Number::Int(value.into()).cast(dtype)
}

/// 1 on the diagonal of a matrix, 0 elsewhere.
fn eye(inputs: &Inputs) -> Outcome {
    let like = inputs.array(0)?;
    if like.ndim() != 2 {
        return unknown("it makes a matrix");
    }
    Ok(vec![Array::from_fn(like.dtype, like.sizes.clone(), |index| {
        of(u8::from(index[0] == index[1]), like.dtype)
    })])
}

/// The elements of each matrix selected by `keep`, whose argument is the distance to the right of the diagonal; 0
/// elsewhere.
fn triangle(inputs: &Inputs, keep: fn(i64, i64) -> bool) -> Outcome {
    let (a, diagonal) = (inputs.array(0)?, inputs.int(1)?);
    let Some(rows) = a.ndim().checked_sub(2) else {
        return Err(Unknown("it takes matrices".into()));
    };
    Ok(vec![Array::from_fn(a.dtype, a.sizes.clone(), |index| {
        let right = index[rows + 1] as i64 - index[rows] as i64;
        if keep(right, diagonal) { a.at(index) } else { of(0, a.dtype) }
    })])
}

/// The ops of this family.
pub const ALL: Family = &[
    ("arange", arange),
    ("eye", eye),
    ("linspace", linspace),
    ("tril", |i| triangle(i, |right, diagonal| right <= diagonal)),
    ("triu", |i| triangle(i, |right, diagonal| right >= diagonal)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{Value, find};

    fn ints(op: &str, dtype: DType, sizes: &[usize], rest: &[Value]) -> Vec<i128> {
        let count: usize = sizes.iter().product();
        let values = (1..=count as i128).map(Number::Int).collect();
        let like = [Value::Array(Array::new(dtype, sizes, values))];
        let inputs = Inputs(like.iter().chain(rest).cloned().collect());
        find(op).expect("an oracle")(&inputs).expect("an answer")[0].ints()
    }

    #[test]
    fn sequences() {
        assert_eq!(ints("arange", DType::U8, &[4], &[Value::Int(1), Value::Int(-1)]), [1, 0, 255, 254]);
        let bounds = [Value::Float(-3.0), Value::Float(9.0)];
        assert_eq!(ints("linspace", DType::I8, &[7], &bounds), [-3, -1, 1, 3, 5, 7, 9]);
        assert_eq!(ints("linspace", DType::I8, &[1], &bounds), [-3]);
        let fractions = [Value::Float(0.5), Value::Float(1.25)];
        assert_eq!(ints("linspace", DType::I8, &[5], &fractions), [0, 0, 0, 0, 1]);
        assert_eq!(ints("linspace", DType::I8, &[2, 3], &bounds), [-3, 0, 1, 4, 6, 9]);
    }

    #[test]
    fn matrices() {
        assert_eq!(ints("eye", DType::I32, &[2, 3], &[]), [1, 0, 0, 0, 1, 0]);
        assert_eq!(ints("tril", DType::I32, &[2, 3], &[Value::Int(1)]), [1, 2, 0, 4, 5, 6]);
        assert_eq!(ints("triu", DType::I32, &[2, 3], &[Value::Int(1)]), [0, 2, 3, 0, 0, 6]);
        assert_eq!(ints("triu", DType::I32, &[2, 2], &[Value::Int(-1)]), [1, 2, 3, 4]);
    }
}
