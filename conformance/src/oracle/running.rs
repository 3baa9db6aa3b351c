//! Cumulative ops: extrema with their indices, and logsumexp.

use super::number::{along, order};
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number};
use keyway::DType;
use std::cmp::Ordering;

/// The indices of the cumulative extremes, the last of equal elements: an element to which no other compares as
/// `wanted`. After a NaN, the last NaN.
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
    let indices = along(a, dim, DType::I64, n, |line| {
        extreme(line, wanted).into_iter().map(|at| Number::Int(at as i128)).collect()
    });
    Ok(vec![values, indices])
}

/// The cumulative logsumexp: the largest element so far, and the sum of exponentials relative to it.
fn log_sums(line: &[Number]) -> Vec<Number> {
    let (mut largest, mut sum) = (f64::NEG_INFINITY, 0.0);
    let step = |value: &Number| {
        let x = value.float();
        if x.is_nan() || largest.is_nan() {
            largest = f64::NAN;
        } else if x == f64::INFINITY || largest == f64::INFINITY {
            (largest, sum) = (f64::INFINITY, 1.0);
        } else if x > largest {
            (largest, sum) = (x, sum * (largest - x).exp() + 1.0);
        } else if x > f64::NEG_INFINITY {
            sum += (x - largest).exp();
        }
        Number::Float(if largest == f64::NEG_INFINITY { largest } else { largest + sum.ln() })
    };
    line.iter().map(step).collect()
}

fn logcumsumexp(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    if !a.dtype.is_float() {
        return Err(Unknown("it takes floats".into()));
    }
    let dim = inputs.dim(1, a.ndim())?;
    let n = a.sizes.get(dim).copied().unwrap_or(1);
    Ok(vec![along(a, dim, a.dtype, n, log_sums)])
}

/// The ops of this family.
pub const ALL: Family = &[
    ("cummax", |i| extremes(i, Ordering::Greater)),
    ("cummin", |i| extremes(i, Ordering::Less)),
    ("logcumsumexp", logcumsumexp),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn indices(values: &[f64], wanted: Ordering) -> Vec<usize> {
        extreme(&values.iter().map(|&v| Number::Float(v)).collect::<Vec<_>>(), wanted)
    }

    #[test]
    fn logarithms_of_sums() {
        let line = [f64::NEG_INFINITY, 0.0, 0.0, 1000.0, 999.0, f64::INFINITY, f64::NAN].map(Number::Float);
        let made: Vec<f64> = log_sums(&line).iter().map(|v| v.float()).collect();
        let two = 1000.0 + (-1.0f64).exp().ln_1p();
        assert_eq!(made[..6], [f64::NEG_INFINITY, 0.0, 2f64.ln(), 1000.0, two, f64::INFINITY]);
        assert!(made[6].is_nan());
    }

    #[test]
    fn the_last_of_equals_and_of_nans() {
        let line = [1.0, 3.0, 3.0, 2.0, 5.0, f64::NAN, 4.0, f64::NAN, 2.0];
        assert_eq!(indices(&line, Ordering::Greater), [0, 1, 2, 2, 4, 5, 5, 7, 7]);
        assert_eq!(indices(&line, Ordering::Less), [0, 0, 0, 0, 0, 5, 5, 7, 7]);
        assert_eq!(indices(&[0.0, -0.0, 1.0, 0.0], Ordering::Less), [0, 1, 1, 3]);
    }
}
