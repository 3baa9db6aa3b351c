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
    Ok(Batch {
        dtype: array.dtype,
        lead: lead.to_vec(),
        rows,
        columns,
        all: (0..count).map(matrix).collect(),
    })
}

/// The array of matrices, which may be vectors if `rest` has one dimension.
pub(super) fn array(dtype: DType, lead: &[usize], rest: &[usize], all: Vec<Vec<f64>>) -> Array {
    let values = all.into_iter().flatten().map(|v| Number::Float(v).cast(dtype)).collect();
    Array::new(dtype, [lead, rest].concat(), values)
}

/// The leading dimensions, and a pair of matrices for each position in them.
type Pairs<'a> = (Vec<usize>, Vec<(&'a Matrix, &'a Matrix)>);

/// The matrices of both batches with broadcast leading dimensions.
pub(super) fn pairs<'a>(a: &'a Batch, b: &'a Batch) -> Result<Pairs<'a>, Unknown> {
    let lead = broadcast(&[&a.lead, &b.lead])?;
    let nth = |own: &[usize]| {
        let count = own.iter().product::<usize>();
        let numbers = (0..count).map(|i| Number::Int(i as i128)).collect();
        Array::new(DType::I64, own.to_vec(), numbers)
            .spread(&lead)
            .map(|n| n.int() as usize)
            .collect::<Vec<_>>()
    };
    let (first, second) = (nth(&a.lead), nth(&b.lead));
    let all = first.iter().zip(&second).map(|(&i, &j)| (&a.all[i], &b.all[j])).collect();
    Ok((lead, all))
}

/// A value below this fraction of the largest makes a matrix too ill-conditioned for a comparison.
pub(super) const SMALL: f64 = 0.02;

/// The largest solution relative to the right side for a comparison.
const GROWTH: f64 = 4.0;

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
    let largest = |m: &Matrix| m.values.iter().map(|v| v.abs()).fold(0.0, f64::max);
    let pivots = (0..n).map(|i| if unit { 1.0 } else { a.at(i, i).abs() }).fold(f64::INFINITY, f64::min);
    if n > 0 && largest(&x) > GROWTH * largest(b) / pivots.min(1.0) {
        return Err(Unknown("a triangular matrix that amplifies rounding errors".into()));
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

/// `LU` in one matrix and the pivots from 0, by Gaussian elimination with partial pivoting.
fn eliminated(a: &Matrix) -> Result<(Matrix, Vec<usize>), Unknown> {
    let (m, n) = (a.rows, a.columns);
    let (mut lu, mut pivots) = (a.clone(), Vec::new());
    for step in 0..m.min(n) {
        let column = |lu: &Matrix, i: usize| lu.at(i, step).abs();
        let pivot = (step..m).fold(step, |best, i| if column(&lu, i) > column(&lu, best) { i } else { best });
        let largest = column(&lu, pivot);
        let second = (step..m).filter(|&i| i != pivot).map(|i| column(&lu, i)).fold(0.0, f64::max);
        let scale = a.values.iter().map(|v| v.abs()).fold(0.0, f64::max);
        if largest <= SMALL * scale || largest - second < 1e-4 * largest {
            return Err(Unknown("a pivot that is small, or one of two equal ones".into()));
        }
        for j in 0..n {
            let (own, other) = (lu.at(step, j), lu.at(pivot, j));
            (*lu.at_mut(step, j), *lu.at_mut(pivot, j)) = (other, own);
        }
        pivots.push(pivot);
        for i in step + 1..m {
            let factor = lu.at(i, step) / lu.at(step, step);
            *lu.at_mut(i, step) = factor;
            for j in step + 1..n {
                *lu.at_mut(i, j) -= factor * lu.at(step, j);
            }
        }
    }
    Ok((lu, pivots))
}

fn lu_factor(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = batch(inputs.array(0)?)?;
    let all = a.all.iter().map(eliminated).collect::<Result<Vec<_>, _>>()?;
    let (factors, pivots): (Vec<_>, Vec<_>) = all.into_iter().map(|(lu, pivots)| (lu.values, pivots)).unzip();
    let pivots = pivots.into_iter().flatten().map(|pivot| Number::Int(pivot as i128 + 1)).collect();
    let count = a.rows.min(a.columns);
    let pivots = Array::new(DType::I32, [&a.lead[..], &[count]].concat(), pivots);
    Ok(vec![array(a.dtype, &a.lead, &[a.rows, a.columns], factors), pivots])
}

/// The product of the factors and the row exchanges: the matrix that was decomposed.
fn recomposed(lu: &Matrix, pivots: &[usize]) -> Matrix {
    let n = lu.rows;
    let l = Matrix::from_fn(n, n, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 1.0,
        std::cmp::Ordering::Greater => lu.at(i, j),
    });
    let u = Matrix::from_fn(n, n, |i, j| if i <= j { lu.at(i, j) } else { 0.0 });
    let mut a = l.times(&u);
    for (i, &pivot) in pivots.iter().enumerate().rev() {
        for j in 0..n {
            let (own, other) = (a.at(i, j), a.at(pivot, j));
            (*a.at_mut(i, j), *a.at_mut(pivot, j)) = (other, own);
        }
    }
    a
}

/// The solution of `a x = b` by elimination.
fn solved(a: &Matrix, b: &Matrix) -> Result<Matrix, Unknown> {
    let (lu, pivots) = eliminated(a)?;
    let mut b = b.clone();
    for (i, &pivot) in pivots.iter().enumerate() {
        for j in 0..b.columns {
            let (own, other) = (b.at(i, j), b.at(pivot, j));
            (*b.at_mut(i, j), *b.at_mut(pivot, j)) = (other, own);
        }
    }
    substituted(&lu, &substituted(&lu, &b, false, true)?, true, false)
}

/// The solution of `a x = b`, or of `x a = b`.
fn on_side(a: &Matrix, b: &Matrix, left: bool) -> Result<Matrix, Unknown> {
    if left { solved(a, b) } else { Ok(solved(&a.transposed(), &b.transposed())?.transposed()) }
}

fn lu_solve(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (lu, b, pivots) = (batch(inputs.array(0)?)?, batch(inputs.array(2)?)?, inputs.array(1)?);
    let (left, adjoint, n) = (inputs.bool(3)?, inputs.bool(4)?, lu.rows);
    let lead = pivots.sizes[..pivots.ndim() - 1].to_vec();
    let rows = pivots.ints().into_iter().map(|pivot| pivot as f64 - 1.0).collect::<Vec<_>>();
    if lead != lu.lead || rows.iter().any(|&row| row < 0.0 || row >= n as f64) {
        return Err(Unknown("pivots of other matrices".into()));
    }
    let matrix = |(nth, lu): (usize, &Matrix)| {
        let pivots: Vec<usize> = rows[nth * n..][..n].iter().map(|&row| row as usize).collect();
        let a = recomposed(lu, &pivots);
        if adjoint { a.transposed() } else { a }
    };
    let a = Batch { all: lu.all.iter().enumerate().map(matrix).collect(), ..lu };
    let (lead, all) = pairs(&a, &b)?;
    let all =
        all.into_iter().map(|(a, b)| Ok(on_side(a, b, left)?.values)).collect::<Result<_, Unknown>>()?;
    Ok(vec![array(a.dtype, &lead, &[b.rows, b.columns], all)])
}

fn solve(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, b, left) = (batch(inputs.array(0)?)?, batch(inputs.array(1)?)?, inputs.bool(2)?);
    let (lead, all) = pairs(&a, &b)?;
    let all =
        all.into_iter().map(|(a, b)| Ok(on_side(a, b, left)?.values)).collect::<Result<_, Unknown>>()?;
    Ok(vec![array(a.dtype, &lead, &[b.rows, b.columns], all)])
}

fn inv(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = batch(inputs.array(0)?)?;
    let inverse = |a: &Matrix| Ok(solved(a, &Matrix::identity(a.rows))?.values);
    let all = a.all.iter().map(inverse).collect::<Result<_, Unknown>>()?;
    Ok(vec![array(a.dtype, &a.lead, &[a.rows, a.rows], all)])
}

/// The family.
pub const ALL: Family = &[
    ("cholesky", cholesky),
    ("inv", inv),
    ("lu_factor", lu_factor),
    ("lu_solve", lu_solve),
    ("solve", solve),
    ("solve_triangular", solve_triangular),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: &[&[f64]]) -> Matrix {
        Matrix::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j])
    }

    #[test]
    fn factors_by_hand() {
        assert_eq!(
            factor(&matrix(&[&[4.0, 2.0], &[2.0, 10.0]])).unwrap(),
            matrix(&[&[2.0, 0.0], &[1.0, 3.0]])
        );
        let (lu, pivots) = eliminated(&matrix(&[&[1.0, 2.0], &[2.0, 6.0]])).unwrap();
        assert_eq!((lu, pivots), (matrix(&[&[2.0, 6.0], &[0.5, -1.0]]), vec![1, 1]));
        assert!(factor(&matrix(&[&[1.0, 2.0], &[2.0, 1.0]])).is_err());
        assert!(eliminated(&matrix(&[&[1.0, 2.0], &[1.0, 2.0]])).is_err());
    }

    #[test]
    fn factors_multiply_to_the_matrix() {
        let a = matrix(&[&[1.0, 5.0, -2.0], &[4.0, 1.0, 0.5], &[2.0, 0.25, 7.0]]);
        let (lu, pivots) = eliminated(&a).unwrap();
        let again = recomposed(&lu, &pivots);
        assert!(a.values.iter().zip(&again.values).all(|(a, b)| (a - b).abs() < 1e-12));
        let b = matrix(&[&[1.0], &[2.0], &[3.0]]);
        let product = a.times(&solved(&a, &b).unwrap());
        assert!(b.values.iter().zip(&product.values).all(|(a, b)| (a - b).abs() < 1e-12));
    }
}
