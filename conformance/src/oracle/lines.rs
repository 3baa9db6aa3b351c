//! Differences of neighbours, and members of a list.

use super::number::along;
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number};
use keyway::DType;

fn unknown<T>(why: &str) -> Result<T, Unknown> {
    Err(Unknown(why.to_string()))
}

/// diff: the differences of consecutive elements, `n` times. After an overflow the results are uncertain.
fn diff(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let (Ok(n), true) = (usize::try_from(inputs.int(1)?), a.ndim() > 0) else {
        return unknown("it takes a dimension, and 0 times or more");
    };
    let dim = inputs.dim(2, a.ndim())?;
    let size = a.sizes[dim];
    let difference = |pair: &[Number]| match (pair[0], pair[1]) {
        (Number::Any, _) | (_, Number::Any) => Number::Any,
        (Number::Bool(x), Number::Bool(y)) => Number::Bool(x != y),
        (Number::Float(x), Number::Float(y)) => {
            let made = y - x;
            let narrow = if a.dtype == DType::F64 { DType::F64 } else { DType::F32 };
            let overflows =
                x.is_finite() && y.is_finite() && !crate::array::round_to(made, narrow).is_finite();
            if overflows && n > 1 { Number::Any } else { Number::Float(made) }
        }
        (x, y) => Number::Int(y.int().wrapping_sub(x.int())),
    };
    Ok(vec![along(a, dim, a.dtype, size.saturating_sub(n), |line| {
        let mut line = line.to_vec();
        for _ in 0..n.min(size) {
            line = line.windows(2).map(difference).collect();
        }
        line
    })])
}

/// isin: whether each element equals one of the test elements.
fn isin(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.promote(&[0, 1])?;
    if dtype == DType::BOOL {
        return unknown("it takes numbers");
    }
    let (a, among, invert) = (inputs.array(0)?.cast(dtype), inputs.array(1)?.cast(dtype), inputs.bool(2)?);
    let same = |x: Number, y: Number| match (x, y) {
        (Number::Float(x), Number::Float(y)) => x == y,
        (x, y) => x.int() == y.int(),
    };
    let is = |x: Number| among.values.iter().any(|&y| same(x, y));
    Ok(vec![a.map(DType::BOOL, |x| Number::Bool(is(x) != invert))])
}

/// The ops of this family.
pub const ALL: Family = &[("diff", diff), ("isin", isin)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{Value, find};

    fn of(op: &str, arrays: &[&[f64]], rest: &[Value]) -> Vec<Array> {
        let arrays = arrays.iter().map(|values| {
            let values: Vec<Number> = values.iter().map(|&v| Number::Float(v)).collect();
            Value::Array(Array::new(DType::F64, [values.len()], values))
        });
        let inputs = Inputs(arrays.chain(rest.iter().cloned()).collect());
        find(op).expect("an oracle")(&inputs).expect("an answer")
    }

    #[test]
    fn values_by_hand() {
        let nan = f64::NAN;
        let twice = [Value::Int(2), Value::Int(0)];
        assert_eq!(of("diff", &[&[1.0, 4.0, 9.0, 16.0]], &twice)[0].floats(), [2.0, 2.0]);
        assert!(of("diff", &[&[1.0]], &twice)[0].values.is_empty());
        let made = of("isin", &[&[nan, 0.0, 2.0], &[-0.0, nan]], &[Value::Bool(false)]);
        assert_eq!(made[0].floats(), [0.0, 1.0, 0.0]);
    }
}
