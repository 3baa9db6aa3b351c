//! Products, lengths and angles of vectors, and traces.

use super::number::{float_total, groups, marked, overflows, sum, times, total};
use super::pointwise::{arithmetic::larger, broadcast};
use super::reduce::length;
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number};
use keyway::DType;

fn unknown<T>(why: &str) -> Result<T, Unknown> {
    Err(Unknown(why.to_string()))
}

/// The sum of the elements on the diagonal, as `sum` has it.
fn trace(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let &[rows, columns] = a.sizes.as_slice() else { return unknown("it takes a matrix") };
    let dtype = if a.dtype.is_float() { a.dtype } else { DType::I64 };
    let diagonal: Vec<Number> = (0..rows.min(columns)).map(|i| a.at(&[i, i]).cast(dtype)).collect();
    Ok(vec![Array::scalar(dtype, total(dtype, &diagonal))])
}

/// `(a2 b3 - a3 b2, a3 b1 - a1 b3, a1 b2 - a2 b1)` along a dimension.
fn cross(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.promote(&[0, 1])?;
    let (a, b) = (inputs.array(0)?.cast(dtype), inputs.array(1)?.cast(dtype));
    if dtype == DType::BOOL || a.ndim() != b.ndim() {
        return unknown("it takes numbers, of as many dimensions both");
    }
    let dim = inputs.dim(2, a.ndim())?;
    if a.sizes.get(dim) != Some(&3) || b.sizes.get(dim) != Some(&3) {
        return unknown("a vector has not 3 elements");
    }
    Ok(vec![Array::from_fn(dtype, broadcast(&[&a.sizes, &b.sizes])?, |index| {
        let product = |i: usize, j: usize| {
            let at = |t: &Array, i: usize| {
                let mut position = index.to_vec();
                position[dim] = i % 3;
                t.broadcast_at(&position)
            };
            times(at(&a, index[dim] + i), at(&b, index[dim] + j))
        };
        match (product(1, 2), product(2, 1)) {
            (Number::Float(x), Number::Float(y)) => float_total(dtype, &[x, -y]),
            (x, y) => Number::Int(x.int().wrapping_sub(y.int())),
        }
    })])
}

/// The p-norm of a row; `None` if its powers overflow, as a backend need not scale them.
fn certain_length(dtype: DType, members: &[Number], p: f64) -> Result<Option<f64>, Unknown> {
    let powers = members.iter().map(|v| v.float().abs().powf(p));
    let finite = members.iter().all(|v| v.float().is_finite() && v.float() != 0.0);
    if finite && !p.is_infinite() && overflows(sum(powers), dtype) {
        return Ok(None);
    }
    length(members, p).map(Some)
}

/// The elements divided by the norms of their rows, or by `eps` if that is larger.
fn normalize(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, p, eps) = (inputs.array(0)?, inputs.float(1)?, inputs.float(3)?);
    if !a.dtype.is_float() {
        return unknown("it takes floats");
    }
    let lines = groups(a, &marked(inputs, 2, a.ndim())?, true);
    let lengths = lines.members.iter().map(|line| {
        Ok(certain_length(a.dtype, line, p)?.map_or(Number::Any, |length| Number::Float(larger(length, eps))))
    });
    let lengths = Array::new(DType::F64, lines.sizes, lengths.collect::<Result<_, Unknown>>()?);
    Ok(vec![Array::from_fn(a.dtype, a.sizes.clone(), |index| match lengths.broadcast_at(index) {
        Number::Float(length) => Number::Float(a.at(index).float() / length),
        other => other,
    })])
}

/// `Σ a b / (|a| |b|)` along a dimension, with lengths below `eps` replaced by it.
fn cosine_similarity(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (dtype, eps) = (inputs.promote(&[0, 1])?, inputs.float(3)?);
    let (a, b) = (inputs.array(0)?.cast(dtype), inputs.array(1)?.cast(dtype));
    let sizes = broadcast(&[&a.sizes, &b.sizes])?;
    if !dtype.is_float() {
        return unknown("it takes floats");
    }
    let mut reduced = vec![false; sizes.len()];
    if let Some(mark) = reduced.get_mut(inputs.dim(2, sizes.len())?) {
        *mark = true;
    }
    let lines = |t: &Array| {
        groups(&Array::from_fn(dtype, sizes.clone(), |index| t.broadcast_at(index)), &reduced, false)
    };
    let (a, b) = (lines(&a), lines(&b));
    let pairs = a.members.iter().zip(&b.members).map(|(x, y)| {
        let lengths = (certain_length(dtype, x, 2.0)?, certain_length(dtype, y, 2.0)?);
        let (Some(own), Some(other)) = lengths else { return Ok(Number::Any) };
        let (own, other) = (larger(own, eps), larger(other, eps));
        let terms: Vec<f64> = x.iter().zip(y).map(|(x, y)| (x.float() / own) * (y.float() / other)).collect();
        Ok(float_total(dtype, &terms))
    });
    let values = pairs.collect::<Result<_, Unknown>>()?;
    Ok(vec![Array::new(dtype, a.sizes, values)])
}

/// The ops of this family.
pub const ALL: Family =
    &[("cosine_similarity", cosine_similarity), ("cross", cross), ("normalize", normalize), ("trace", trace)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{Value, find};

    fn of(op: &str, arrays: &[(&[usize], &[f64])], rest: &[Value]) -> Array {
        let arrays = arrays.iter().map(|(sizes, values)| {
            let values = values.iter().map(|&v| Number::Float(v)).collect();
            Value::Array(Array::new(DType::F64, sizes.to_vec(), values))
        });
        let inputs = Inputs(arrays.chain(rest.iter().cloned()).collect());
        find(op).expect("an oracle")(&inputs).expect("an answer").swap_remove(0)
    }

    #[test]
    fn values_by_hand() {
        assert_eq!(of("trace", &[(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])], &[]).floats(), [6.0]);
        let vectors: [(&[usize], &[f64]); 2] = [(&[3], &[1.0, 2.0, 3.0]), (&[3], &[4.0, 5.0, 6.0])];
        assert_eq!(of("cross", &vectors, &[Value::Int(0)]).floats(), [-3.0, 6.0, -3.0]);
        let rest = [Value::Float(2.0), Value::Ints(vec![0]), Value::Float(1e-12)];
        assert_eq!(of("normalize", &[(&[2], &[3.0, -4.0])], &rest).floats(), [0.6, -0.8]);
        assert_eq!(of("normalize", &[(&[2], &[0.0, 0.0])], &rest).floats(), [0.0, 0.0]);
        let rest = [Value::Int(0), Value::Float(1e-8)];
        let made = of("cosine_similarity", &[(&[2], &[3.0, 4.0]), (&[2], &[-4.0, 3.0])], &rest);
        assert!(made.floats()[0].abs() < 1e-15);
    }
}
