//! What the factorisations share: the rules of matrix arguments, and helpers of their derivatives.

use crate::error::Result;
use crate::ops::rules::wrong_shape;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::{Dims, broadcast};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args};

/// The library of this project with the kernels of the factorisations.
pub(super) const LIBRARY: &str = "keyway-linalg";

/// The expected shape in messages.
const SQUARE: &str = "a square matrix or a batch of them, [.., n, n]";

/// A batch of matrices: the leading dimensions, rows and columns, and the dtype.
pub(super) struct Matrices<'a> {
    pub(super) lead: &'a [usize],
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) dtype: DType,
}

impl Matrices<'_> {
    /// The leading dimensions followed by `rest`.
    pub(super) fn with(&self, rest: &[usize]) -> Dims {
        let mut sizes = Dims::from_slice(self.lead);
        sizes.extend(rest.iter().copied());
        sizes
    }
}

/// The dtypes of the ops, in messages.
const DTYPES: &str = "f32, f64, c64 or c128";

/// Whether the factorisations have kernels of the dtype.
fn is_served(dtype: DType) -> bool {
    matches!(dtype.to_real(), DType::F32 | DType::F64)
}

/// Refuses an argument of a dtype without kernels.
fn checked_dtype(args: &Args<'_>, i: usize) -> RuleResult<DType> {
    let (dtype, argument) = (args.tensor(i)?.dtype(), args.op.schema.param_name(i));
    match is_served(dtype) {
        true => Ok(dtype),
        false => Err(Error::DType { op: args.name(), argument, expected: DTYPES.to_string(), got: dtype }),
    }
}

/// Argument `i`, a batch of matrices of f32, f64, c64 or c128.
///
/// # Errors
/// `DType`, `Shape`.
pub(super) fn matrices<'a>(args: &Args<'a>, i: usize) -> RuleResult<Matrices<'a>> {
    let dtype = checked_dtype(args, i)?;
    match args.tensor(i)?.sizes() {
        [lead @ .., rows, columns] => Ok(Matrices { lead, rows: *rows, columns: *columns, dtype }),
        got => Err(wrong_shape(args, i, "a matrix or a batch of matrices, [.., m, n]".to_string(), got)),
    }
}

/// Argument `i`, a batch of square matrices of f32, f64, c64 or c128.
///
/// # Errors
/// `DType`, `Shape`.
pub(super) fn square<'a>(args: &Args<'a>, i: usize) -> RuleResult<Matrices<'a>> {
    let batch = matrices(args, i)?;
    if batch.rows != batch.columns {
        let got = args.tensor(i)?.sizes();
        return Err(wrong_shape(args, i, SQUARE.to_string(), got));
    }
    Ok(batch)
}

/// The sizes of the solution of a system with the square matrices of argument `i` and the right sides of argument `j`, which
/// has as many rows, or, on the other side, as many columns.
///
/// # Errors
/// `DType`, `Shape`, `Broadcast`.
pub(super) fn solution(args: &Args<'_>, [i, j]: [usize; 2], left: bool) -> RuleResult<(DType, Dims)> {
    let (a, b) = (square(args, i)?, matrices(args, j)?);
    let name = args.op.schema.param_name(i);
    if a.dtype != b.dtype {
        let (argument, expected) = (args.op.schema.param_name(j), format!("{}, as `{name}`", a.dtype));
        return Err(Error::DType { op: args.name(), argument, expected, got: b.dtype });
    }
    let (size, what) = if left { (b.rows, "rows") } else { (b.columns, "columns") };
    if size != a.rows {
        let expected = format!("of {} {what}, as many as `{name}` has", a.rows);
        return Err(wrong_shape(args, j, expected, args.tensor(j)?.sizes()));
    }
    let mut sizes = broadcast(args.name(), a.lead, b.lead)?;
    sizes.extend([b.rows, b.columns]);
    Ok((a.dtype, sizes))
}

/// The transpose of each matrix.
pub(super) fn t(matrix: &Tensor) -> Result<Tensor> {
    matrix.transpose(-2, -1)
}

/// The adjoint of each matrix: the transpose of a real one.
pub(super) fn h(matrix: &Tensor) -> Result<Tensor> {
    t(matrix)?.conj()
}

/// The Hermitian part of each matrix, `(A + Aᴴ) / 2`.
pub(super) fn hermitian(matrix: &Tensor) -> Result<Tensor> {
    matrix.add(&h(matrix)?)?.mul(0.5)
}

/// The sums `Im(gⱼᴴ vⱼ)` over the columns of both, `[.., n]`.
pub(super) fn phase_gradient(v: &Tensor, grad: &Tensor) -> Result<Tensor> {
    grad.conj()?.mul(v)?.sum(-2)?.imag()
}

/// The gradient of the columns `v`, by a loss that depends on their phases, where the kernels make the first component that is not
/// negligible real: with `w` the differential for another choice of the phase and `k` the index of this component, that of the
/// column is `w - i Im(wₖ) / vₖ v`, so `i Im(gᴴ v) / vₖ` is added to element `k` of the gradient `g`. `of_phase` is `Im(gᴴ v)`.
pub(super) fn with_phase(grad: &Tensor, v: &Tensor, of_phase: &Tensor) -> Result<Tensor> {
    if v.elem_count() == 0 {
        return Ok(grad.clone());
    }
    let size = v.detach().abs()?;
    let above = size.gt(&size.amax_keepdim(-2)?.mul(1.0 / 1024.0)?)?;
    let count = above.to_dtype(DType::I64)?.cumsum(-2)?;
    let first = count.eq(1)?.logical_and(&above)?.to_dtype(v.dtype().to_real())?;
    let component = v.real()?.mul(&first)?.sum_keepdim(-2)?;
    let added = first.mul(&of_phase.unsqueeze(-2)?.div(&component)?)?;
    grad.add(&Tensor::complex(&added.zeros_like()?, &added)?)
}

/// The distance from 1 to the next number of the dtype's parts.
pub(super) fn epsilon(dtype: DType) -> f64 {
    if dtype.to_real() == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON }
}

/// The lower triangle with half the diagonal.
pub(super) fn half_lower(matrix: &Tensor) -> Result<Tensor> {
    matrix.tril()?.add(&matrix.tril_with(-1)?)?.mul(0.5)
}

/// The matrix of `1 / (vⱼ - vᵢ)` off the diagonal and 0 on it, for each vector of values.
pub(super) fn gaps(values: &Tensor) -> Result<Tensor> {
    let n = values.dim(-1)?;
    let one = Tensor::eye_with(n, n, (values.dtype(), values.device()))?;
    let differences = values.unsqueeze(-2)?.sub(&values.unsqueeze(-1)?)?;
    differences.add(&one)?.reciprocal()?.sub(&one)
}

/// The bound at or below which a singular value counts as 0, `[.., 1]`: the larger one of `atol` and `rtol` times the largest
/// singular value. The default of `rtol` is `max(m, n)` times the dtype's epsilon, or 0 if `atol` is given and above 0.
pub(super) fn cutoff(a: &Tensor, s: &Tensor, atol: Option<f64>, rtol: Option<f64>) -> Result<Tensor> {
    let usual = a.dim(-1)?.max(a.dim(-2)?) as f64 * epsilon(a.dtype());
    let atol = atol.unwrap_or(0.0);
    let rtol = rtol.unwrap_or(if atol > 0.0 { 0.0 } else { usual });
    if s.dim(-1)? == 0 {
        return s.sum_keepdim(-1);
    }
    s.amax_keepdim(-1)?.mul(rtol)?.clamp_min(atol)
}

/// Number argument `i`, if it was given.
///
/// # Errors
/// `Value`.
pub(super) fn optional_float(args: &Args<'_>, i: usize) -> RuleResult<Option<f64>> {
    match args.get(i) {
        Arg::None => Ok(None),
        _ => args.float(i).map(Some),
    }
}

/// Refuses an argument `self` of the method `op` that is no batch of square matrices.
///
/// # Errors
/// `Shape`.
pub(super) fn checked_shape(op: &'static str, a: &Tensor) -> Result<()> {
    match a.shape() {
        [.., rows, columns] if rows == columns => Ok(()),
        got => {
            let expected = SQUARE.to_string();
            Err(Error::Shape { op, argument: "self", expected, got: got.into() }.into())
        }
    }
}

/// As [`checked_shape`], and refuses dtypes other than f32, f64, c64 and c128.
///
/// # Errors
/// `DType`, `Shape`.
pub(super) fn checked_square(op: &'static str, a: &Tensor) -> Result<()> {
    match a.dtype() {
        dtype if is_served(dtype) => checked_shape(op, a),
        got => Err(Error::DType { op, argument: "self", expected: DTYPES.to_string(), got }.into()),
    }
}
