//! Factorisations and solvers, by the algorithms of textbooks (Golub and Van Loan, "Matrix Computations").

use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number};
use crate::oracle::pointwise::broadcast;
use keyway::DType;

/// A matrix in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Matrix {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) values: Vec<f64>,
}

impl Matrix {
    pub(super) fn new(rows: usize, columns: usize) -> Matrix {
        Matrix { rows, columns, values: vec![0.0; rows * columns] }
    }

    pub(super) fn from_fn(rows: usize, columns: usize, value: impl Fn(usize, usize) -> f64) -> Matrix {
        let all = (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
        Matrix { rows, columns, values: all.map(|(i, j)| value(i, j)).collect() }
    }

    pub(super) fn identity(n: usize) -> Matrix {
        Matrix::from_fn(n, n, |i, j| f64::from(u8::from(i == j)))
    }

    pub(super) fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.columns + j]
    }

    pub(super) fn at_mut(&mut self, i: usize, j: usize) -> &mut f64 {
        &mut self.values[i * self.columns + j]
    }

    pub(super) fn transposed(&self) -> Matrix {
        Matrix::from_fn(self.columns, self.rows, |i, j| self.at(j, i))
    }

    pub(super) fn times(&self, other: &Matrix) -> Matrix {
        Matrix::from_fn(self.rows, other.columns, |i, j| {
            (0..self.columns).map(|k| self.at(i, k) * other.at(k, j)).sum()
        })
    }
}

/// A batch of matrices.
pub(super) struct Batch {
    pub(super) dtype: DType,
    pub(super) lead: Vec<usize>,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) all: Vec<Matrix>,
}

/// The batch of an array of f32 or f64 with finite elements.
pub(super) fn batch(array: &Array) -> Result<Batch, Unknown> {
    let &[ref lead @ .., rows, columns] = array.sizes.as_slice() else {
        return Err(Unknown(format!("no matrix: {:?}", array.sizes)));
    };
    let values = array.floats();
    if !matches!(array.dtype, DType::F32 | DType::F64) || values.iter().any(|v| !v.is_finite()) {
        return Err(Unknown(format!("a matrix of {} with values that may not be finite", array.dtype)));
    }
    let count = lead.iter().product();
    let matrix = |nth: usize| Matrix {
        rows,
        columns,
        values: values[nth * rows * columns..][..rows * columns].to_vec(),
    };
    Ok(Batch { dtype: array.dtype, lead: lead.to_vec(), rows, columns, all: (0..count).map(matrix).collect() })
}

/// The array of matrices, which may be vectors if `rest` has one dimension.
pub(super) fn array(dtype: DType, lead: &[usize], rest: &[usize], all: Vec<Vec<f64>>) -> Array {
    let values = all.into_iter().flatten().map(|v| Number::Float(v).cast(dtype)).collect();
    Array::new(dtype, [lead, rest].concat(), values)
}

/// The matrices of both batches with broadcast leading dimensions.
pub(super) fn pairs<'a>(a: &'a Batch, b: &'a Batch) -> Result<(Vec<usize>, Vec<(&'a Matrix, &'a Matrix)>), Unknown> {
    let lead = broadcast(&[&a.lead, &b.lead])?;
    let nth = |own: &[usize]| {
        let count = own.iter().product::<usize>();
        let numbers = (0..count).map(|i| Number::Int(i as i128)).collect();
        Array::new(DType::I64, own.to_vec(), numbers).spread(&lead).map(|n| n.int() as usize).collect::<Vec<_>>()
    };
    let (first, second) = (nth(&a.lead), nth(&b.lead));
    let all = first.iter().zip(&second).map(|(&i, &j)| (&a.all[i], &b.all[j])).collect();
    Ok((lead, all))
}

/// A value below this fraction of the largest makes a matrix too ill-conditioned for a comparison.
pub(super) const SMALL: f64 = 1e-3;

/// Cholesky–Banachiewicz, row by row, on the symmetric part.
fn factor(a: &Matrix) -> Result<Matrix, Unknown> {
    let n = a.rows;
    let mut l = Matrix::new(n, n);
    for i in 0..n {
        for j in 0..=i {
            let own = 0.5 * a.at(i, j) + 0.5 * a.at(j, i);
            let rest = own - (0..j).map(|k| l.at(i, k) * l.at(j, k)).sum::<f64>();
            *l.at_mut(i, j) = match i == j {
                true if rest <= SMALL * own.abs() => {
                    return Err(Unknown("a matrix that is hardly positive definite".into()));
                }
                true => rest.sqrt(),
                false => rest / l.at(j, j),
            };
        }
    }
    Ok(l)
}

fn cholesky(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, upper) = (batch(inputs.array(0)?)?, inputs.bool(1)?);
    let made = |a: &Matrix| -> Result<Vec<f64>, Unknown> {
        let l = factor(a)?;
        Ok(if upper { l.transposed().values } else { l.values })
    };
    let all = a.all.iter().map(made).collect::<Result<_, _>>()?;
    Ok(vec![array(a.dtype, &a.lead, &[a.rows, a.rows], all)])
}

/// The solution of `a x = b` by substitution.
pub(super) fn substituted(a: &Matrix, b: &Matrix, upper: bool, unit: bool) -> Result<Matrix, Unknown> {
    let n = a.rows;
    let mut x = b.clone();
    for step in 0..n {
        let i = if upper { n - 1 - step } else { step };
        let known = if upper { i + 1..n } else { 0..i };
        let divisor = if unit { 1.0 } else { a.at(i, i) };
        let largest = known.clone().map(|k| a.at(i, k).abs()).fold(0.0, f64::max);
        if divisor.abs() <= SMALL * largest || divisor == 0.0 {
            return Err(Unknown("a triangular matrix that is hardly regular".into()));
        }
        for j in 0..b.columns {
            let rest = x.at(i, j) - known.clone().map(|k| a.at(i, k) * x.at(k, j)).sum::<f64>();
            *x.at_mut(i, j) = rest / divisor;
        }
    }
    Ok(x)
}

fn solve_triangular(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, b) = (batch(inputs.array(0)?)?, batch(inputs.array(1)?)?);
    let (upper, left, unit) = (inputs.bool(2)?, inputs.bool(3)?, inputs.bool(4)?);
    let (lead, all) = pairs(&a, &b)?;
    let made = |(a, b): (&Matrix, &Matrix)| match left {
        true => Ok(substituted(a, b, upper, unit)?.values),
        false => Ok(substituted(&a.transposed(), &b.transposed(), !upper, unit)?.transposed().values),
    };
    let all = all.into_iter().map(made).collect::<Result<_, _>>()?;
    Ok(vec![array(a.dtype, &lead, &[b.rows, b.columns], all)])
}

/// The family.
pub const ALL: Family = &[("cholesky", cholesky), ("solve_triangular", solve_triangular)];
