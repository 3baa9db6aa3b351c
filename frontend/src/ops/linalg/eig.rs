//! `eig`

use super::matrix::{LIBRARY, epsilon, h, phase_gradient, square, with_phase};
use crate::Tensor;
use crate::autograd::{AutogradError, Backward};
use crate::error::{Error, Result};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use keyway_dispatcher::error::{Error as DispatchError, Result as RuleResult};
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// The eigenvalues (`[.., n]`) and eigenvectors (the columns of `[.., n, n]`) of each square matrix, `[.., n, n]` of f32, f64,
    /// c64 or c128: `A V = V diag(L)`. Both are complex, also those of real matrices. [`Tensor::eigh`] is faster and more accurate
    /// for symmetric and Hermitian matrices.
    ///
    /// The order of the eigenvalues is not specified, as in LAPACK and PyTorch. Of a real matrix, conjugate pairs are adjacent, the
    /// value with the positive imaginary part first, and their vectors are conjugates. The vectors have the Euclidean norm 1, and
    /// the first component of each that is larger than a thousandth of its largest one is real and positive. LAPACK, and thus
    /// PyTorch and NumPy, normalise the same length; there the largest component is real, of either sign. The vectors of a
    /// defective matrix, such as `[[1, 1], [0, 1]]`, are linearly dependent or nearly so.
    ///
    /// The gradient (C. Boeddeker et al., "On the computation of complex-valued gradients", 2017, 4.22) needs linearly independent
    /// eigenvectors, and that of the vectors also distinct eigenvalues. Otherwise the backward pass is an error. The gradient of a
    /// loss that depends on the phases of the vectors, which PyTorch refuses, is that of the phases above. The kernels are those of
    /// the library `keyway-linalg`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let rotation = Tensor::new([[0.0f64, -1.0], [1.0, 0.0]])?;
    /// let (values, vectors) = rotation.eig()?;
    /// assert_eq!(values.imag()?.round()?.to_vec::<f64>()?, [1.0, -1.0]);
    /// assert_eq!(vectors.shape(), [2, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square; another dtype; an element that is NaN or infinite: the error names the index of the matrix
    /// in the batch. A defective matrix whose vectors exceed the range of the dtype during the computation, such as a Jordan block of 20
    /// rows.
    #[doc(alias = "linalg_eig")]
    pub fn eig(&self) -> Result<(Tensor, Tensor)> {
        DEF.run_pair(&[self.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let a = square(args, 0)?;
    let complex = a.dtype.to_complex().unwrap_or(a.dtype);
    let plan = Plan::one(a.dtype, a.with(&[a.rows]), complex, Strides::Contiguous);
    Ok(plan.and(a.with(&[a.rows, a.rows]), complex, Strides::Contiguous))
}

fn missing(reason: &str) -> Error {
    AutogradError::Missing { op: "eig".into(), reason: reason.into() }.into()
}

/// The inverse of the eigenvectors.
fn inverted(v: &Tensor) -> Result<Tensor> {
    let reason = "the eigenvectors are linearly dependent: the matrix cannot be diagonalised, or only with large errors";
    let inverse = v.inv().map_err(|error| match error {
        // A zero on the diagonal of `U`.
        Error::Dispatch(DispatchError::Rejected { .. }) => missing(reason),
        other => other,
    })?;
    let condition = v.detach().matrix_norm()?.mul(&inverse.detach().matrix_norm()?)?;
    match condition.elem_count() == 0
        || condition.max_all()?.to_dtype(crate::DType::F64)?.item::<f64>()? < 0.1 / epsilon(v.dtype())
    {
        true => Ok(inverse),
        false => Err(missing(reason)),
    }
}

/// The matrix of `conj(1 / (Lⱼ - Lᵢ))` off the diagonal and 0 on it.
fn gaps(values: &Tensor) -> Result<Tensor> {
    let n = values.dim(-1)?;
    let one = Tensor::eye_with(n, n, (values.dtype(), values.device()))?;
    let differences = values.unsqueeze(-2)?.sub(&values.unsqueeze(-1)?)?;
    if values.elem_count() > 0 {
        let size = values.detach().abs()?.amax_keepdim(-1)?;
        let bound = size.mul(n as f64 * epsilon(values.dtype()))?.unsqueeze(-1)?;
        let near = differences.detach().abs()?.le(&bound)?.logical_and(&one.real()?.eq(0)?)?;
        if near.sum_all()?.item::<i64>()? > 0 {
            return Err(missing(
                "the gradient of the eigenvectors needs distinct eigenvalues; that of the eigenvalues alone does not",
            ));
        }
    }
    differences.add(&one)?.reciprocal()?.sub(&one)?.conj()
}

/// `V⁻ᴴ (diag(gL) + F ∘ (Vᴴ g)) Vᴴ`, where `F` is that of [`gaps`] and `g = gV - V diag(Re(Vᴴ gV))`, with the gradient of the phases
/// added: that of vectors which may have any length.
fn derivative(b: &Backward<'_>) -> Result<Tensor> {
    let (values, v) = (b.output(0)?, b.output(1)?);
    let vh = h(&v)?;
    let mut inner = b.grad(0)?.diag_embed()?;
    if b.has_grad(1) {
        let grad = b.grad(1)?;
        let lengths = grad.conj()?.mul(&v)?.sum_keepdim(-2)?.real()?;
        let free = with_phase(&grad.sub(&v.mul(&lengths)?)?, &v, &phase_gradient(&v, grad)?)?;
        inner = inner.add(&vh.matmul(&free)?.mul(&gaps(&values)?)?)?;
    }
    h(&inverted(&v)?)?.matmul(&inner)?.matmul(&vh)
}

/// `eig`
pub static DEF: OpDef = OpDef::new(
    "eig(Tensor self) -> (Tensor, Tensor)",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0, saves_outputs: 0b11, formula: |b, g| g.set(0, || derivative(b)) },
    Vec::new,
)
.dtypes(Dtypes::COMPLEX)
.with(OpFlags::COMPLEX)
.in_library(LIBRARY);
