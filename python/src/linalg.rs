//! Linear algebra of the Rust side that is no op: methods of `Tensor`, and functions with the arguments of `torch.linalg`.

use crate::autograd::tensors;
use crate::functional::called;
use crate::handle::PyTensor;
use crate::{ops, runtime};
use keyway::Tensor;
use keyway::ops::linalg::MatrixNorm;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type Input<'a, 'py> = &'a Bound<'py, PyTensor>;

/// A norm of matrices by its name or order; the Frobenius norm if none is given.
fn matrix_norm(op: &str, ord: Option<&Bound<'_, PyAny>>) -> PyResult<MatrixNorm> {
    let Some(ord) = ord else { return Ok(MatrixNorm::Frobenius) };
    match ord.extract::<String>().as_deref() {
        Ok("fro") => Ok(MatrixNorm::Frobenius),
        Ok("nuc") => Ok(MatrixNorm::Nuclear),
        Ok(other) => {
            Err(PyValueError::new_err(format!("{op}: expected \"fro\", \"nuc\" or a number, got `{other}`")))
        }
        Err(_) => Ok(MatrixNorm::P(ord.extract()?)),
    }
}

#[pymethods]
impl PyTensor {
    /// The dot products along a dimension of two tensors that broadcast, the first one conjugated.
    #[pyo3(signature = (other, dim=-1))]
    pub fn vecdot(slf: Input, other: Input, dim: i64) -> PyResult<PyTensor> {
        let other = &other.get().0;
        called(slf, |x| x.vecdot(other, dim))
    }

    /// The determinant of each matrix.
    pub fn det(slf: Input) -> PyResult<PyTensor> {
        called(slf, Tensor::det)
    }

    /// The sign of each determinant, and the logarithm of its absolute value.
    fn _slogdet(slf: Input) -> PyResult<(PyTensor, PyTensor)> {
        runtime::start(slf.py())?;
        let x: &Tensor = &slf.get().0;
        let (sign, logarithm) = ops::released(slf.py(), x.elem_count(), || x.slogdet())?;
        Ok((PyTensor(sign), PyTensor(logarithm)))
    }

    /// The `n`th power of each matrix, of its inverse if `n` is negative.
    pub fn matrix_power(slf: Input, n: i64) -> PyResult<PyTensor> {
        called(slf, |x| x.matrix_power(n))
    }

    /// The exponential of each matrix.
    pub fn matrix_exp(slf: Input) -> PyResult<PyTensor> {
        called(slf, Tensor::matrix_exp)
    }

    /// The rank of each matrix: the number of singular values above `max(atol, rtol * largest)`.
    #[pyo3(signature = (*, atol=None, rtol=None))]
    pub fn matrix_rank(slf: Input, atol: Option<f64>, rtol: Option<f64>) -> PyResult<PyTensor> {
        called(slf, |x| match (atol, rtol) {
            (None, None) => x.matrix_rank(),
            (atol, rtol) => x.matrix_rank_with(atol.unwrap_or(0.0), rtol.unwrap_or(0.0)),
        })
    }

    /// The norm of each matrix in the last two dimensions: `"fro"`, `"nuc"`, or 1, 2, infinity or the negative of one.
    #[pyo3(signature = (ord=None))]
    pub fn matrix_norm(slf: Input, ord: Option<&Bound<'_, PyAny>>) -> PyResult<PyTensor> {
        let ord = matrix_norm("matrix_norm", ord)?;
        called(slf, |x| x.matrix_norm_with(ord))
    }
}

/// The solutions of least squares `||A X - B||`, (..., m, n) and (..., m, k), of the least norm if there are several.
#[pyfunction]
fn lstsq(a: Input, b: Input) -> PyResult<PyTensor> {
    let b = &b.get().0;
    called(a, |a| a.lstsq(b))
}

/// The factors P, L and U of each matrix: `A = P @ L @ U`.
#[pyfunction]
fn lu(a: Input) -> PyResult<(PyTensor, PyTensor, PyTensor)> {
    runtime::start(a.py())?;
    let x: &Tensor = &a.get().0;
    let (p, l, u) = ops::released(a.py(), x.elem_count(), || x.lu())?;
    Ok((PyTensor(p), PyTensor(l), PyTensor(u)))
}

/// The condition number of each matrix: the largest singular value by the smallest one, or by another norm `p` that of the matrix
/// times that of its inverse.
#[pyfunction]
#[pyo3(signature = (a, p=None))]
fn cond(a: Input, p: Option<&Bound<'_, PyAny>>) -> PyResult<PyTensor> {
    let Some(p) = p else { return called(a, Tensor::cond) };
    let norm = matrix_norm("cond", Some(p))?;
    called(a, |a| a.cond_with(norm))
}

/// The product of matrices in the order of the fewest multiplications; the first and the last one may be vectors.
#[pyfunction]
fn multi_dot(py: Python<'_>, tensors: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    runtime::start(py)?;
    let all = self::tensors(tensors)?;
    let elements = all.iter().map(Tensor::elem_count).sum();
    ops::released(py, elements, || Tensor::multi_dot(&all)).map(PyTensor)
}

/// The Vandermonde matrix of a vector: its powers from 0 to `n - 1` as columns; as many as elements if `n` is not given.
#[pyfunction]
#[pyo3(signature = (x, n=None))]
fn vander(x: Input, n: Option<usize>) -> PyResult<PyTensor> {
    let n = n.unwrap_or_else(|| x.get().0.shape().last().copied().unwrap_or(0));
    called(x, |x| x.vander(n))
}

/// The first columns of the product of Householder reflections, with the vectors `a` and the factors `tau`.
#[pyfunction]
fn householder_product(a: Input, tau: Input) -> PyResult<PyTensor> {
    let tau = &tau.get().0;
    called(a, |a| a.householder_product(tau))
}

/// The solution of `A X = B`, of vectors too, or without `left` of `X A = B`.
#[pyfunction]
fn solve(a: Input, b: Input, left: bool) -> PyResult<PyTensor> {
    let b = &b.get().0;
    called(a, |a| if left { a.solve(b) } else { a.solve_with(b, false) })
}

/// The solution of `A X = B` by the Cholesky factor `l` of `A`.
#[pyfunction]
#[pyo3(signature = (b, l, upper=false))]
fn cholesky_solve(b: Input, l: Input, upper: bool) -> PyResult<PyTensor> {
    let l = &l.get().0;
    called(b, |b| b.cholesky_solve(l, upper))
}

/// The inverse of a matrix by its Cholesky factor.
#[pyfunction]
#[pyo3(signature = (l, upper=false))]
fn cholesky_inverse(l: Input, upper: bool) -> PyResult<PyTensor> {
    called(l, |l| l.cholesky_inverse(upper))
}

/// The submodule of the extension module.
#[pymodule]
pub mod matrices {
    #[pymodule_export]
    use super::{
        cholesky_inverse, cholesky_solve, cond, householder_product, lstsq, lu, multi_dot, solve, vander,
    };
}
