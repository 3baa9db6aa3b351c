//! What lines of elements have: differences, a middle, members.

use super::number::{along, order};
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number};
use keyway::DType;

fn unknown<T>(why: &str) -> Result<T, Unknown> {
    Err(Unknown(why.to_string()))
}

/// Each element less the one before it, `n` times. After an overflow nothing is certain.
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

/// The lower middle of the elements in order, and where it is if that is certain; NaN if there is one.
fn median(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let dim = inputs.dim(1, a.ndim())?;
    let size = a.sizes.get(dim).copied().unwrap_or(1);
    if a.dtype == DType::BOOL || (size == 0 && a.sizes.iter().enumerate().all(|(d, &n)| d == dim || n > 0)) {
        return unknown("it takes numbers, one at least");
    }
    let middle = |line: &[Number]| -> Option<(Number, Number)> {
        if let Some(nan) = line.iter().find(|v| v.float().is_nan()) {
            return Some((*nan, Number::Any));
        }
        let mut places: Vec<usize> = (0..line.len()).collect();
        places.sort_by(|&i, &j| order(line[i], line[j]));
        let &place = places.get(line.len().saturating_sub(1) / 2)?;
        let alone = line.iter().filter(|v| order(**v, line[place]).is_eq()).count() == 1;
        Some((line[place], if alone { Number::Int(place as i128) } else { Number::Any }))
    };
    let pick = |line: &[Number], nth: usize| -> Vec<Number> {
        middle(line).map(|(value, place)| if nth == 0 { value } else { place }).into_iter().collect()
    };
    let length = usize::from(size > 0);
    let mut made = [
        along(a, dim, a.dtype, length, |line| pick(line, 0)),
        along(a, dim, DType::I64, length, |line| pick(line, 1)),
    ];
    for array in &mut made {
        match (inputs.bool(2)?, a.ndim() > 0) {
            (true, true) => array.sizes[dim] = 1,
            (false, true) => {
                array.sizes.remove(dim);
            }
            _ => {}
        }
    }
    Ok(Vec::from(made))
}

/// Whether each element equals one of the others.
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

/// Its ops.
pub const ALL: Family = &[("diff", diff), ("isin", isin), ("median", median)];

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
        let rest = [Value::Int(0), Value::Bool(false)];
        let made = of("median", &[&[4.0, 1.0, 3.0, 2.0]], &rest);
        assert_eq!((made[0].floats(), made[1].ints()), (vec![2.0], vec![3]));
        assert!(of("median", &[&[4.0, nan, 3.0]], &rest)[0].floats()[0].is_nan());
        assert_eq!(of("median", &[&[2.0, 2.0]], &rest)[1].values, [Number::Any]);
        let made = of("isin", &[&[nan, 0.0, 2.0], &[-0.0, nan]], &[Value::Bool(false)]);
        assert_eq!(made[0].floats(), [0.0, 1.0, 0.0]);
    }
}
