//! Orthogonal decompositions, by the algorithms of textbooks: Householder reflections and Jacobi rotations (Golub and Van Loan,
//! "Matrix Computations").
//!
//! Signs are chosen as the ops define them, so that results are unique. Vectors that are not unique, such as those of equal
//! eigenvalues, have no expected value.

use super::factor::{Batch, Matrix, SMALL, array, batch};
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number};

/// `Q` with all columns and `R`, by Householder reflections. The signs of the first columns are such that the diagonal of `R` is
/// 0 or more.
fn reflected(a: &Matrix) -> Result<(Matrix, Matrix), Unknown> {
    let (m, n) = (a.rows, a.columns);
    let (mut q, mut r) = (Matrix::identity(m), a.clone());
    let scale = a.values.iter().map(|v| v.abs()).fold(0.0, f64::max);
    for step in 0..m.min(n) {
        let norm = (step..m).map(|i| r.at(i, step).powi(2)).sum::<f64>().sqrt();
        if norm <= SMALL * scale {
            return Err(Unknown("columns that are hardly independent".into()));
        }
        if (step + 1..m).any(|i| r.at(i, step) != 0.0) {
            let head = r.at(step, step);
            let sign = if head < 0.0 { -1.0 } else { 1.0 };
            let v: Vec<f64> =
                (step..m).map(|i| r.at(i, step) + if i == step { sign * norm } else { 0.0 }).collect();
            let square: f64 = v.iter().map(|x| x * x).sum();
            for j in 0..n {
                let dot: f64 = v.iter().enumerate().map(|(i, x)| x * r.at(step + i, j)).sum();
                v.iter().enumerate().for_each(|(i, x)| *r.at_mut(step + i, j) -= 2.0 * dot / square * x);
            }
            for i in 0..m {
                let dot: f64 = v.iter().enumerate().map(|(j, x)| x * q.at(i, step + j)).sum();
                v.iter().enumerate().for_each(|(j, x)| *q.at_mut(i, step + j) -= 2.0 * dot / square * x);
            }
        }
    }
    for i in 0..m.min(n) {
        if r.at(i, i) < 0.0 {
            (0..n).for_each(|j| *r.at_mut(i, j) *= -1.0);
            (0..m).for_each(|j| *q.at_mut(j, i) *= -1.0);
        }
    }
    let r = Matrix::from_fn(m, n, |i, j| if i <= j { r.at(i, j) } else { 0.0 });
    Ok((q, r))
}

fn qr(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, complete) = (batch(inputs.array(0)?)?, inputs.str(1)? == "complete");
    let inner = if complete { a.rows } else { a.rows.min(a.columns) };
    let all = a.all.iter().map(reflected).collect::<Result<Vec<_>, _>>()?;
    let (q, r): (Vec<_>, Vec<_>) = all
        .into_iter()
        .map(|(q, r)| {
            let q = Matrix::from_fn(a.rows, inner, |i, j| q.at(i, j));
            (q.values, r.values[..inner * a.columns].to_vec())
        })
        .unzip();
    Ok(vec![array(a.dtype, &a.lead, &[a.rows, inner], q), array(a.dtype, &a.lead, &[inner, a.columns], r)])
}

/// The rotation by which `J` zeroes the off-diagonal element `b` of `[[a, b], [b, c]]`.
fn rotation(a: f64, b: f64, c: f64) -> (f64, f64) {
    let tau = (c - a) / (2.0 * b);
    let t = tau.signum() / (tau.abs() + (1.0 + tau * tau).sqrt());
    let cosine = 1.0 / (1.0 + t * t).sqrt();
    (cosine, t * cosine)
}

/// Rotates columns `p` and `q`.
fn rotate(a: &mut Matrix, p: usize, q: usize, (c, s): (f64, f64)) {
    for i in 0..a.rows {
        let (x, y) = (a.at(i, p), a.at(i, q));
        (*a.at_mut(i, p), *a.at_mut(i, q)) = (c * x - s * y, s * x + c * y);
    }
}

/// Rotates rows `p` and `q`.
fn rotate_rows(a: &mut Matrix, p: usize, q: usize, (c, s): (f64, f64)) {
    for j in 0..a.columns {
        let (x, y) = (a.at(p, j), a.at(q, j));
        (*a.at_mut(p, j), *a.at_mut(q, j)) = (c * x - s * y, s * x + c * y);
    }
}

/// More sweeps than any matrix of the suite needs.
const SWEEPS: usize = 60;

/// The eigenvalues of the symmetric part in ascending order, and the eigenvectors as columns, by cyclic Jacobi rotations.
fn eigen(a: &Matrix) -> (Vec<f64>, Matrix) {
    let n = a.rows;
    let mut d = Matrix::from_fn(n, n, |i, j| 0.5 * a.at(i, j) + 0.5 * a.at(j, i));
    let mut v = Matrix::identity(n);
    // A smaller element changes no digit of an eigenvalue.
    let negligible = 1e-20 * d.values.iter().map(|x| x.abs()).fold(0.0, f64::max);
    for _ in 0..SWEEPS {
        let mut done = true;
        for p in 0..n {
            for q in p + 1..n {
                if d.at(p, q).abs() > negligible {
                    let by = rotation(d.at(p, p), d.at(p, q), d.at(q, q));
                    rotate(&mut d, p, q, by);
                    rotate_rows(&mut d, p, q, by);
                    rotate(&mut v, p, q, by);
                    done = false;
                }
            }
        }
        if done {
            break;
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| d.at(i, i).total_cmp(&d.at(j, j)));
    let values = order.iter().map(|&i| d.at(i, i)).collect();
    (values, Matrix::from_fn(n, n, |i, j| v.at(i, order[j])))
}

/// 1 or -1, by which the first component of a column that is larger than 2^-10 of its largest one becomes positive. No value if
/// rounding may decide which one that is.
fn sign(a: &Matrix, column: usize) -> Result<f64, Unknown> {
    let entries: Vec<f64> = (0..a.rows).map(|i| a.at(i, column)).collect();
    let largest = entries.iter().map(|x| x.abs()).fold(0.0, f64::max);
    let sizes = entries.iter().map(|x| x.abs() / largest * 1024.0);
    if sizes.clone().any(|size| size > 0.25 && size < 4.0) {
        return Err(Unknown("a vector whose sign rounding decides".into()));
    }
    let first = entries.iter().zip(sizes).find(|(_, size)| *size > 1.0);
    Ok(if first.is_some_and(|(x, _)| *x < 0.0) { -1.0 } else { 1.0 })
}

/// Refuses values of which two are close, relative to the largest.
fn distinct(values: &[f64]) -> Result<(), Unknown> {
    let largest = values.iter().map(|v| v.abs()).fold(0.0, f64::max);
    match values.windows(2).any(|pair| (pair[0] - pair[1]).abs() < SMALL * largest) {
        true => Err(Unknown("vectors of values that are close".into())),
        false => Ok(()),
    }
}

fn eigh(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = batch(inputs.array(0)?)?;
    let mut values = Vec::new();
    let mut vectors = Vec::new();
    for matrix in &a.all {
        let (own, mut v) = eigen(matrix);
        distinct(&own)?;
        for j in 0..a.rows {
            let sign = sign(&v, j)?;
            (0..a.rows).for_each(|i| *v.at_mut(i, j) *= sign);
        }
        values.push(own);
        vectors.push(v.values);
    }
    Ok(vec![array(a.dtype, &a.lead, &[a.rows], values), array(a.dtype, &a.lead, &[a.rows, a.rows], vectors)])
}

fn eigvalsh(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = batch(inputs.array(0)?)?;
    let values = a.all.iter().map(|matrix| eigen(matrix).0).collect();
    Ok(vec![array(a.dtype, &a.lead, &[a.rows], values)])
}

/// `U`, `S` and `V` with `min(m, n)` columns, by one-sided Jacobi rotations (Hestenes); the columns of `U` for a value of 0 are 0.
fn singular(a: &Matrix) -> (Matrix, Vec<f64>, Matrix) {
    if a.rows < a.columns {
        let (v, s, u) = singular(&a.transposed());
        return (u, s, v);
    }
    let (m, n) = (a.rows, a.columns);
    let (mut u, mut v) = (a.clone(), Matrix::identity(n));
    for _ in 0..SWEEPS {
        let mut done = true;
        for p in 0..n {
            for q in p + 1..n {
                let dot = |i: usize, j: usize| (0..m).map(|k| u.at(k, i) * u.at(k, j)).sum::<f64>();
                let (a, b, c) = (dot(p, p), dot(p, q), dot(q, q));
                if b.abs() > f64::EPSILON * (a * c).sqrt() {
                    let by = rotation(a, b, c);
                    rotate(&mut u, p, q, by);
                    rotate(&mut v, p, q, by);
                    done = false;
                }
            }
        }
        if done {
            break;
        }
    }
    let norm = |j: usize| (0..m).map(|i| u.at(i, j).powi(2)).sum::<f64>().sqrt();
    let norms: Vec<f64> = (0..n).map(norm).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| norms[j].total_cmp(&norms[i]));
    let left = Matrix::from_fn(m, n, |i, j| {
        let norm = norms[order[j]];
        if norm > 0.0 { u.at(i, order[j]) / norm } else { 0.0 }
    });
    (left, order.iter().map(|&j| norms[j]).collect(), Matrix::from_fn(n, n, |i, j| v.at(i, order[j])))
}

fn svd(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, full) = (batch(inputs.array(0)?)?, inputs.bool(1)?);
    let (m, n) = (a.rows, a.columns);
    let k = m.min(n);
    let (of_u, of_v) = if full { (m, n) } else { (k, k) };
    // The vectors beyond the singular values are any basis of the rest.
    let (mut left, mut right, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let number = |x: f64| Number::Float(x).cast(a.dtype);
    for matrix in &a.all {
        let (u, s, v) = singular(matrix);
        distinct(&s)?;
        if s.last().is_some_and(|&least| least < SMALL * s[0] || least == 0.0) {
            return Err(Unknown("a matrix that is hardly of full rank".into()));
        }
        let signs = (0..k).map(|j| sign(&u, j)).collect::<Result<Vec<_>, _>>()?;
        let element = |a: &Matrix, i: usize, j: usize| {
            signs.get(j).map_or(Number::Any, |sign| number(sign * a.at(i, j)))
        };
        left.extend((0..m * of_u).map(|at| element(&u, at / of_u, at % of_u)));
        right.extend((0..of_v * n).map(|at| element(&v, at % n, at / n)));
        values.push(s);
    }
    Ok(vec![
        Array::new(a.dtype, [&a.lead[..], &[m, of_u]].concat(), left),
        array(a.dtype, &a.lead, &[k], values),
        Array::new(a.dtype, [&a.lead[..], &[of_v, n]].concat(), right),
    ])
}

fn svdvals(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = batch(inputs.array(0)?)?;
    let values: Vec<Vec<f64>> = a.all.iter().map(|matrix| singular(matrix).1).collect();
    if values.iter().any(|s| s.last().is_some_and(|&least| least < 1e-3 * s[0])) {
        return Err(Unknown("a singular value that is small relative to the largest one".into()));
    }
    Ok(vec![array(a.dtype, &a.lead, &[a.rows.min(a.columns)], values)])
}

/// `V S⁻¹ Uᵀ` of matrices of full rank.
fn pinv(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    if !inputs.is_none(1) || !inputs.is_none(2) {
        return Err(Unknown("a pseudoinverse with tolerances".into()));
    }
    let a = batch(inputs.array(0)?)?;
    let Batch { dtype, lead, rows: m, columns: n, all } = &a;
    let inverse = |matrix: &Matrix| {
        let (u, s, v) = singular(matrix);
        if s.last().is_some_and(|&least| least < SMALL * s[0] || least == 0.0) {
            return Err(Unknown("a matrix that is hardly of full rank".into()));
        }
        let scaled = Matrix::from_fn(*n, s.len(), |i, j| v.at(i, j) / s[j]);
        Ok(scaled.times(&u.transposed()).values)
    };
    let made = all.iter().map(inverse).collect::<Result<_, _>>()?;
    Ok(vec![array(*dtype, lead, &[*n, *m], made)])
}

/// The family.
pub const ALL: Family =
    &[("eigh", eigh), ("eigvalsh", eigvalsh), ("pinv", pinv), ("qr", qr), ("svd", svd), ("svdvals", svdvals)];

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: &[&[f64]]) -> Matrix {
        Matrix::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j])
    }

    fn is_near(a: &Matrix, b: &Matrix) -> bool {
        a.values.len() == b.values.len() && a.values.iter().zip(&b.values).all(|(a, b)| (a - b).abs() < 1e-12)
    }

    fn diagonal(values: &[f64]) -> Matrix {
        Matrix::from_fn(values.len(), values.len(), |i, j| if i == j { values[i] } else { 0.0 })
    }

    const TALL: [&[f64]; 4] = [&[3.0, -1.0, 0.5], &[1.0, 0.25, -4.0], &[2.0, 0.75, 6.0], &[-0.5, 1.5, 0.1]];

    #[test]
    fn reflections_multiply_to_the_matrix() {
        for a in [matrix(&TALL), matrix(&TALL).transposed(), matrix(&TALL[..3])] {
            let (q, r) = reflected(&a).unwrap();
            assert!(
                is_near(&q.times(&r), &a) && is_near(&q.transposed().times(&q), &Matrix::identity(a.rows))
            );
            assert!((0..a.rows.min(a.columns)).all(|i| r.at(i, i) > 0.0));
        }
        assert!(reflected(&matrix(&[&[1.0, 1.0], &[1.0, 1.0]])).is_err());
    }

    #[test]
    fn eigenvectors_diagonalise_the_matrix() {
        let (values, v) = eigen(&matrix(&[&[0.0, 2.0], &[2.0, 3.0]]));
        assert!((values[0] + 1.0).abs() < 1e-12 && (values[1] - 4.0).abs() < 1e-12);
        assert!(is_near(
            &v.times(&diagonal(&values)).times(&v.transposed()),
            &matrix(&[&[0.0, 2.0], &[2.0, 3.0]])
        ));
        let flipped = Matrix::from_fn(2, 2, |i, j| -v.at(i, j).abs() * if i == 0 { 1.0 } else { -1.0 });
        assert_eq!(sign(&flipped, 0).unwrap(), -1.0);
        assert!(sign(&matrix(&[&[1.0], &[1.0 / 1024.0]]), 0).is_err());
    }

    #[test]
    fn singular_vectors_multiply_to_the_matrix() {
        for a in [matrix(&TALL), matrix(&TALL).transposed()] {
            let (u, s, v) = singular(&a);
            assert!(s.windows(2).all(|pair| pair[0] > pair[1]));
            assert!(is_near(&u.times(&diagonal(&s)).times(&v.transposed()), &a));
        }
        assert_eq!(singular(&matrix(&[&[0.0, 2.0], &[3.0, 0.0]])).1, [3.0, 2.0]);
    }
}
