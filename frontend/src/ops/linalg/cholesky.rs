//! `cholesky`

use super::matrix::{LIBRARY, h, half_lower, hermitian, square};
use super::solve_triangular::solved;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{Fill, Sample, SampleArg, error, fixed, plain, sample, tensor};
use crate::{DType, autograd::Backward};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The Cholesky factor of each symmetric or Hermitian positive definite matrix, `[.., n, n]` of f32, f64, c64 or c128: the
    /// lower triangular `L` with a real positive diagonal and `L Lᴴ = A`.
    ///
    /// `A` is the Hermitian part `(self + selfᴴ) / 2`, so the gradient is Hermitian, as that of PyTorch; PyTorch itself reads
    /// one triangle. The gradient is that of I. Murray, "Differentiation of the Cholesky decomposition", 2016.
    ///
    /// The kernels are those of the library `keyway-linalg`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[4.0f32, 2.0], [2.0, 10.0]])?;
    /// assert_eq!(a.cholesky()?.to_vec::<f32>()?, [2.0, 0.0, 1.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square; another dtype. A matrix that is not positive definite or has NaN: the error names the order
    /// of its first leading minor that is not positive, and the index of the matrix in the batch.
    #[doc(alias = "linalg_cholesky")]
    pub fn cholesky(&self) -> Result<Tensor> {
        self.cholesky_with(false)
    }

    /// [`Tensor::cholesky`], with `upper` as the upper triangular factor `U` with `Uᴴ U = A`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[4.0f32, 2.0], [2.0, 10.0]])?;
    /// assert_eq!(a.cholesky_with(true)?.to_vec::<f32>()?, [2.0, 1.0, 0.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn cholesky_with(&self, upper: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Bool(upper)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let a = square(args, 0)?;
    Ok(Plan::one(a.dtype, a.with(&[a.rows, a.rows]), a.dtype, Strides::Contiguous))
}

/// With `S = L⁻ᴴ Φ(Lᴴ gL) L⁻¹`, where `Φ` is the lower triangle with half the diagonal: the Hermitian part of `S`.
fn derivative(b: &Backward<'_>) -> Result<Tensor> {
    let (factor, grad) = (b.output(0)?, b.grad(0)?);
    let (l, grad) = if b.bool(1)? { (h(&factor)?, h(grad)?) } else { (factor, grad.clone()) };
    let inner = half_lower(&h(&l)?.matmul(&grad)?)?;
    // L⁻ᴴ from the left, L⁻¹ from the right.
    let s = solved(&h(&l)?, &inner, [true, true, false])?;
    hermitian(&solved(&l, &s, [false, false, false])?)
}

fn samples() -> Vec<Sample> {
    let call = |lead: &[usize], n, upper| {
        let sizes = [lead, &[n, n]].concat();
        sample([tensor(&sizes, Fill::Definite), SampleArg::Bool(upper)])
    };
    vec![
        call(&[], 1, false),
        call(&[], 4, false),
        call(&[], 3, true),
        call(&[2], 3, false),
        call(&[2, 3], 2, true),
        call(&[], 0, false),
        call(&[0], 3, false),
        call(&[3], 0, true),
        call(&[], 9, false),
    ]
}

/// `cholesky`
pub static DEF: OpDef = OpDef::new(
    "cholesky(Tensor self, bool upper=False) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_output(|b, g| g.set(0, || derivative(b))),
    samples,
)
.dtypes(Dtypes::F32_F64)
.errors(|| {
    let call = |arg, message| error([arg, SampleArg::Bool(false)], message);
    let values = |sizes: &[usize], list: &[f64]| tensor(sizes, Fill::Values(list.to_vec()));
    vec![
        call(plain(&[3]), "a matrix or a batch of matrices"),
        call(plain(&[2, 3]), "a square matrix"),
        call(fixed(&[2, 2], DType::I64, Fill::Index(3)), "f32, f64, c64 or c128"),
        call(fixed(&[2, 2], DType::BF16, Fill::Index(3)), "f32, f64, c64 or c128"),
        call(values(&[2, 2], &[1.0, 2.0, 2.0, 1.0]), "leading minor of order 2 is not positive"),
        call(values(&[2, 1, 1], &[1.0, -1.0]), "batch index [1]"),
        call(values(&[1, 1], &[f64::NAN]), "leading minor of order 1"),
    ]
})
.with(OpFlags::COMPLEX)
.in_library(LIBRARY);
