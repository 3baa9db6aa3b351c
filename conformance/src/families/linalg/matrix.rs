//! Complex matrices in f64, and their singular values.

use keyway::Complex;

/// A complex number in f64.
pub type C = Complex<f64>;

/// A matrix in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// The elements.
    pub values: Vec<C>,
}

impl Matrix {
    /// The matrix with these elements.
    pub fn from_fn(rows: usize, columns: usize, mut value: impl FnMut(usize, usize) -> C) -> Matrix {
        let mut values = Vec::with_capacity(rows * columns);
        for i in 0..rows {
            values.extend((0..columns).map(|j| value(i, j)));
        }
        Matrix { rows, columns, values }
    }

    /// The matrix with these numbers on its diagonal.
    pub fn diagonal(values: &[C]) -> Matrix {
        let n = values.len();
        Matrix::from_fn(n, n, |i, j| if i == j { values[i] } else { C::default() })
    }

    /// The identity.
    pub fn one(n: usize) -> Matrix {
        Matrix::diagonal(&vec![C::new(1.0, 0.0); n])
    }

    /// An element.
    pub fn at(&self, i: usize, j: usize) -> C {
        self.values[i * self.columns + j]
    }

    /// The transpose.
    pub fn t(&self) -> Matrix {
        Matrix::from_fn(self.columns, self.rows, |i, j| self.at(j, i))
    }

    /// The adjoint.
    pub fn h(&self) -> Matrix {
        Matrix::from_fn(self.columns, self.rows, |i, j| self.at(j, i).conj())
    }

    /// The product.
    pub fn times(&self, other: &Matrix) -> Matrix {
        Matrix::from_fn(self.rows, other.columns, |i, j| {
            (0..self.columns).map(|k| self.at(i, k) * other.at(k, j)).sum()
        })
    }

    /// The difference.
    pub fn minus(&self, other: &Matrix) -> Matrix {
        Matrix::from_fn(self.rows, self.columns, |i, j| self.at(i, j) - other.at(i, j))
    }

    /// The Hermitian part, `(A + Aᴴ) / 2`.
    pub fn hermitian(&self) -> Matrix {
        Matrix::from_fn(self.rows, self.columns, |i, j| 0.5 * (self.at(i, j) + self.at(j, i).conj()))
    }

    /// The elements on the diagonal and below; those above are 0.
    pub fn lower(&self) -> Matrix {
        Matrix::from_fn(self.rows, self.columns, |i, j| if i >= j { self.at(i, j) } else { C::default() })
    }

    /// The elements on the diagonal and above; those below are 0.
    pub fn upper(&self) -> Matrix {
        self.t().lower().t()
    }

    /// The same with ones on the diagonal.
    pub fn unit(&self) -> Matrix {
        Matrix::from_fn(self.rows, self.columns, |i, j| if i == j { C::new(1.0, 0.0) } else { self.at(i, j) })
    }

    /// The first `rows` rows and `columns` columns.
    pub fn corner(&self, rows: usize, columns: usize) -> Matrix {
        Matrix::from_fn(rows, columns, |i, j| self.at(i, j))
    }

    /// The largest modulus; NaN if an element is.
    pub fn largest(&self) -> f64 {
        match self.values.iter().any(|z| z.is_nan()) {
            true => f64::NAN,
            false => self.values.iter().map(|z| z.norm()).fold(0.0, f64::max),
        }
    }

    /// The Frobenius norm.
    pub fn norm(&self) -> f64 {
        self.values.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt()
    }

    /// The singular values in descending order, by one-sided Jacobi rotations (Golub and Van Loan, 8.6.3).
    pub fn singular_values(&self) -> Vec<f64> {
        // Columns that are not linearly independent by their number converge slowly.
        let wide = self.columns > self.rows;
        let mut columns: Vec<Vec<C>> = match wide {
            true => {
                (0..self.rows).map(|i| (0..self.columns).map(|j| self.at(i, j).conj()).collect()).collect()
            }
            false => (0..self.columns).map(|j| (0..self.rows).map(|i| self.at(i, j)).collect()).collect(),
        };
        let square = |a: &[C]| a.iter().map(|z| z.norm_sqr()).sum::<f64>();
        let n = columns.len();
        for _ in 0..60 {
            let mut rotated = false;
            for (p, q) in (0..n).flat_map(|p| (p + 1..n).map(move |q| (p, q))) {
                let inner: C = columns[p].iter().zip(&columns[q]).map(|(a, b)| a.conj() * b).sum();
                let (a, b, size) = (square(&columns[p]), square(&columns[q]), inner.norm());
                if size <= 1e-15 * (a * b).sqrt() || size == 0.0 {
                    continue;
                }
                rotated = true;
                let (phase, zeta) = (inner.conj() / size, (b - a) / (2.0 * size));
                let tangent = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
                let cosine = 1.0 / (1.0 + tangent * tangent).sqrt();
                let sine = cosine * tangent;
                for i in 0..columns[p].len() {
                    let (x, y) = (columns[p][i], columns[q][i] * phase);
                    columns[p][i] = x * cosine - y * sine;
                    columns[q][i] = x * sine + y * cosine;
                }
            }
            if !rotated {
                break;
            }
        }
        let mut values: Vec<f64> = columns.iter().map(|column| square(column).sqrt()).collect();
        values.sort_by(|a, b| b.total_cmp(a));
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn singular_values_by_hand() {
        let c = C::new;
        let a = Matrix::diagonal(&[c(0.0, 3.0), c(-4.0, 0.0), c(0.0, 0.0)]);
        let close = |got: Vec<f64>, wanted: &[f64]| {
            assert!(got.len() == wanted.len() && got.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12));
        };
        close(a.singular_values(), &[4.0, 3.0, 0.0]);
        // The rows (1, i) and (i, 1) are orthogonal with length √2; of (1, i, 0), the outer product with itself has rank 1.
        let b =
            Matrix { rows: 2, columns: 2, values: vec![c(1.0, 0.0), c(0.0, 1.0), c(0.0, 1.0), c(1.0, 0.0)] };
        close(b.singular_values(), &[2f64.sqrt(), 2f64.sqrt()]);
        let row = Matrix { rows: 1, columns: 3, values: vec![c(1.0, 0.0), c(0.0, 1.0), c(0.0, 0.0)] };
        close(row.t().times(&row).singular_values(), &[2.0, 0.0, 0.0]);
        assert!(
            Matrix { rows: 1, columns: 2, values: vec![c(f64::NAN, 0.0), c(1.0, 0.0)] }.largest().is_nan()
        );
    }
}
