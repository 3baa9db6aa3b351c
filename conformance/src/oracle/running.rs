//! What holds of all elements up to and with each one: extrema and their places, logarithms of sums.

use super::number::{along, order};
use super::reduce::log_sum_exp;
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number};
use keyway::DType;
use std::cmp::Ordering;

/// For each element the place of the extreme one so far, the last of equals: the one that no other is `wanted` to. Once there is
/// a NaN, the last NaN.
fn extreme(line: &[Number], wanted: Ordering) -> Vec<usize> {
    let nan = |v: Number| matches!(v, Number::Float(x) if x.is_nan());
    let mut best = 0;
    let step = |at: usize| {
        let (held, new) = (line[best], line[at]);
        if nan(new) || (!nan(held) && order(held, new) != wanted) {
            best = at;
        }
        best
    };
    (0..line.len()).map(step).collect()
}

fn extremes(inputs: &Inputs, wanted: Ordering) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let dim = inputs.dim(1, a.ndim())?;
    let n = a.sizes.get(dim).copied().unwrap_or(1);
    let values =
        along(a, dim, a.dtype, n, |line| extreme(line, wanted).into_iter().map(|at| line[at]).collect());
    let places = along(a, dim, DType::I64, n, |line| {
        extreme(line, wanted).into_iter().map(|at| Number::Int(at as i128)).collect()
    });
    Ok(vec![values, places])
}

fn logcumsumexp(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    if !a.dtype.is_float() {
        return Err(Unknown("it takes floats".into()));
    }
    let dim = inputs.dim(1, a.ndim())?;
    let n = a.sizes.get(dim).copied().unwrap_or(1);
    Ok(vec![along(a, dim, a.dtype, n, |line| {
        (1..=line.len()).map(|count| Number::Float(log_sum_exp(&line[..count]))).collect()
    })])
}

/// Its ops.
pub const ALL: Family = &[
    ("cummax", |i| extremes(i, Ordering::Greater)),
    ("cummin", |i| extremes(i, Ordering::Less)),
    ("logcumsumexp", logcumsumexp),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn places(values: &[f64], wanted: Ordering) -> Vec<usize> {
        extreme(&values.iter().map(|&v| Number::Float(v)).collect::<Vec<_>>(), wanted)
    }

    #[test]
    fn the_last_of_equals_and_of_nans() {
        let line = [1.0, 3.0, 3.0, 2.0, 5.0, f64::NAN, 4.0, f64::NAN, 2.0];
        assert_eq!(places(&line, Ordering::Greater), [0, 1, 2, 2, 4, 5, 5, 7, 7]);
        assert_eq!(places(&line, Ordering::Less), [0, 0, 0, 0, 0, 5, 5, 7, 7]);
        assert_eq!(places(&[0.0, -0.0, 1.0, 0.0], Ordering::Less), [0, 1, 1, 3]);
    }
}
