//! Sorting ops. NaN is the greatest; the sort is stable.

use crate::array::{Array, Number};
use crate::oracle::number::{along, order};
use crate::oracle::{Family, Inputs, Unknown};
use keyway::DType;

/// The indices that sort the elements.
fn ranking(line: &[Number], descending: bool) -> Vec<usize> {
    let mut permutation: Vec<usize> = (0..line.len()).collect();
    permutation.sort_by(|&i, &j| {
        let ascending = order(line[i], line[j]);
        if descending { ascending.reverse() } else { ascending }
    });
    permutation
}

/// The first `k` elements in order along `dim`, and their indices.
fn first(a: &Array, dim: usize, k: usize, descending: bool) -> Vec<Array> {
    let values = along(a, dim, a.dtype, k, |line| {
        ranking(line, descending).into_iter().take(k).map(|i| line[i]).collect()
    });
    let indices = along(a, dim, DType::I64, k, |line| {
        ranking(line, descending).into_iter().take(k).map(|i| Number::Int(i as i128)).collect()
    });
    vec![values, indices]
}

fn sort(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let dim = inputs.dim(1, a.ndim())?;
    Ok(first(a, dim, a.sizes.get(dim).copied().unwrap_or(1), inputs.bool(2)?))
}

fn argsort(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    sort(inputs).map(|mut made| vec![made.remove(1)])
}

fn topk(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let dim = inputs.dim(2, a.ndim())?;
    let size = a.sizes.get(dim).copied().unwrap_or(1);
    let k = usize::try_from(inputs.int(1)?).ok().filter(|&k| k <= size && (k > 0 || a.ndim() > 0));
    let k = k.ok_or_else(|| Unknown(format!("more elements than {size}")))?;
    Ok(first(a, dim, k, inputs.bool(3)?))
}

/// The unique values in ascending order, the inverse indices, and the counts. Each NaN is distinct, and their order is
/// unspecified. The second and third output are empty unless requested.
fn unique(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let (mut values, mut counts): (Vec<Number>, Vec<i128>) = (Vec::new(), Vec::new());
    let mut inverse = vec![Number::Int(0); a.numel()];
    for i in ranking(&a.values, false) {
        match (values.last(), counts.last_mut()) {
            // NaN is not equal to itself.
            (Some(last), Some(count)) if *last == a.values[i] => *count += 1,
            _ => {
                values.push(a.values[i]);
                counts.push(1);
            }
        }
        let nan = matches!(a.values[i], Number::Float(x) if x.is_nan());
        inverse[i] = if nan { Number::Any } else { Number::Int(values.len() as i128 - 1) };
    }
    let counts: Vec<Number> = counts.into_iter().map(Number::Int).collect();
    let none = || Array::new(DType::I64, [0], Vec::new());
    Ok(vec![
        Array::new(a.dtype, [values.len()], values),
        if inputs.bool(1)? { Array::new(DType::I64, a.sizes.clone(), inverse) } else { none() },
        if inputs.bool(2)? { Array::new(DType::I64, [counts.len()], counts) } else { none() },
    ])
}

/// The family's part.
pub const ALL: Family = &[("argsort", argsort), ("sort", sort), ("topk", topk), ("unique", unique)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Value;

    fn numbers(values: &[f64]) -> Vec<Number> {
        values.iter().map(|&v| Number::Float(v)).collect()
    }

    #[test]
    fn equals_keep_their_order_in_both_directions() {
        let line = numbers(&[2.0, f64::NAN, 1.0, 2.0]);
        assert_eq!(ranking(&line, false), [2, 0, 3, 1]);
        assert_eq!(ranking(&line, true), [1, 0, 3, 2]);
    }

    #[test]
    fn each_nan_is_a_value_of_its_own() {
        let a = Array::new(DType::F64, [5], numbers(&[f64::NAN, 1.0, -1.0, 1.0, f64::NAN]));
        let made = unique(&Inputs(vec![Value::Array(a), Value::Bool(true), Value::Bool(true)])).unwrap();
        assert_eq!(made[0].sizes, [4]);
        let indices = [Number::Any, Number::Int(1), Number::Int(0), Number::Int(1), Number::Any];
        assert_eq!((made[1].values.as_slice(), made[2].ints()), (indices.as_slice(), vec![1, 2, 1, 1]));
    }
}
