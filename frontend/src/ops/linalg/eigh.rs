//! `eigh`

use super::matrix::{LIBRARY, gaps, h, hermitian, phase_gradient, square, with_phase};
use crate::autograd::Backward;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{Fill, Sample, error, fixed, plain, sample, tensor};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// The eigenvalues (`[.., n]`, real) and orthonormal eigenvectors (the columns of `[.., n, n]`) of each symmetric or Hermitian
    /// matrix, `[.., n, n]` of f32, f64, c64 or c128: `A = V diag(L) Vᴴ`, with the eigenvalues in ascending order.
    /// [`Tensor::eig`] is for other matrices.
    ///
    /// `A` is the Hermitian part `(self + selfᴴ) / 2`; PyTorch reads one triangle instead. The first component of each
    /// eigenvector that is larger than a thousandth of its largest one is real and positive, so the vectors of distinct eigenvalues are
    /// unique. LAPACK, and thus PyTorch and NumPy, leave the signs and phases to the algorithm.
    ///
    /// The gradient (Giles 2008, 3.1) of the eigenvalues is always finite. That of the eigenvectors divides by the differences
    /// of the eigenvalues: it is infinite or NaN if two are equal, and inaccurate if two are close.
    /// [`Tensor::eigvalsh`] computes the values alone. The kernels are those of the library `keyway-linalg`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (values, vectors) = Tensor::new([[0.0f64, 2.0], [2.0, 3.0]])?.eigh()?;
    /// assert_eq!(values.round()?.to_vec::<f64>()?, [-1.0, 4.0]);
    /// assert!(vectors.select(0, 0)?.to_vec::<f64>()?.iter().all(|&x| x > 0.0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square; another dtype; an element that is NaN or infinite: the error names the index of the matrix
    /// in the batch.
    #[doc(alias = "linalg_eigh")]
    pub fn eigh(&self) -> Result<(Tensor, Tensor)> {
        DEF.run_pair(&[self.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let a = square(args, 0)?;
    let (values, vectors) = (a.with(&[a.rows]), a.with(&[a.rows, a.rows]));
    let plan = Plan::one(a.dtype, values, a.dtype.to_real(), Strides::Contiguous);
    Ok(plan.and(vectors, a.dtype, Strides::Contiguous))
}

/// The Hermitian part of `V (diag(gL) + F ∘ (Vᴴ gV)) Vᴴ`, where `F` has `1 / (Lⱼ - Lᵢ)` off the diagonal and 0 on it. The
/// gradient of complex vectors includes that of their phases.
fn derivative(b: &Backward<'_>) -> Result<Tensor> {
    let (values, v) = (b.output(0)?, b.output(1)?);
    let mut inner = b.grad(0)?.diag_embed()?;
    if b.has_grad(1) {
        let mut grad = b.grad(1)?.clone();
        if v.dtype().is_complex() {
            grad = with_phase(&grad, &v, &phase_gradient(&v, &grad)?)?;
        }
        inner = inner.add(&h(&v)?.matmul(&grad)?.mul(&gaps(&values)?)?)?;
    }
    hermitian(&v.matmul(&inner)?.matmul(&h(&v)?)?)
}

/// The sizes of the samples of both ops.
pub(super) fn samples() -> Vec<Sample> {
    let sizes: [&[usize]; 8] =
        [&[1, 1], &[3, 3], &[4, 4], &[2, 3, 3], &[2, 1, 2, 2], &[0, 0], &[0, 3, 3], &[2, 0, 0]];
    let call = |sizes: &[usize]| sample([tensor(sizes, Fill::Definite)]);
    let reason = "the error of each value is relative to the largest one";
    sizes.iter().map(|sizes| call(sizes).tolerance_factor(10.0, reason)).collect()
}

/// `eigh`
pub static DEF: OpDef = OpDef::new(
    "eigh(Tensor self) -> (Tensor, Tensor)",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0, saves_outputs: 0b11, formula: |b, g| g.set(0, || derivative(b)) },
    samples,
)
.dtypes(Dtypes::F32_F64)
.errors(|| {
    vec![
        error([plain(&[3])], "a matrix or a batch of matrices"),
        error([plain(&[2, 3])], "a square matrix"),
        error([fixed(&[2, 2], DType::I64, Fill::Index(3))], "f32, f64, c64 or c128"),
        error([tensor(&[1, 1], Fill::Values(vec![f64::NAN]))], "finite elements"),
    ]
})
.with(OpFlags::COMPLEX)
.in_library(LIBRARY);
