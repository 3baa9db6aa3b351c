//! `svd`
//!
//! Arguments:
//! - `full_matrices`: whether the factors are square.

use super::matrix::{LIBRARY, gaps, h, matrices, phase_gradient, with_phase};
use crate::autograd::{AutogradError, Backward};
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags, no_result};
use crate::ops::sample::{Fill, Sample, SampleArg, error, fixed, plain, sample, tensor};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The singular value decomposition `(U, S, Vᴴ)` of each matrix, `[.., m, n]` of f32, f64, c64 or c128: `A = U diag(S) Vᴴ`,
    /// with orthogonal or unitary `U` (`[.., m, m]`) and `Vᴴ` (`[.., n, n]`) and the `min(m, n)` singular values, which are real,
    /// in descending order.
    ///
    /// The first component of each left singular vector that is larger than a thousandth of its largest one is real and positive, so
    /// the vectors of distinct singular values above 0 are unique. LAPACK, and thus PyTorch and NumPy, leave the signs and phases to
    /// the algorithm. The vectors beyond `min(m, n)` are any orthonormal basis of the rest and have no gradient:
    /// [`Tensor::svd_with`] omits them.
    ///
    /// The gradient (J. Townsend, "Differentiating the singular value decomposition", 2016) of the singular values is always
    /// finite. That of the vectors divides by the differences of the squared singular values, and by the values themselves if
    /// `m` is not `n` or the matrix is complex: it is infinite or NaN if two are equal, or one is 0. [`Tensor::svdvals`] computes the values alone. The
    /// kernels are those of the library `keyway-linalg`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (u, s, vt) = Tensor::new([[0.0f64, 2.0], [3.0, 0.0]])?.svd()?;
    /// assert_eq!(s.round()?.to_vec::<f64>()?, [3.0, 2.0]);
    /// assert_eq!((u.shape(), vt.shape()), (&[2, 2][..], &[2, 2][..]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of fewer than two dimensions; another dtype; an element that is NaN or infinite: the error names the index of the
    /// matrix in the batch.
    #[doc(alias = "linalg_svd")]
    pub fn svd(&self) -> Result<(Tensor, Tensor, Tensor)> {
        self.svd_with(true)
    }

    /// [`Tensor::svd`]; without `full_matrices` only the first `k = min(m, n)` vectors: `U` is `[.., m, k]`, `Vᴴ` is `[.., k, n]`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (u, s, vt) = Tensor::zeros((5, 3))?.svd_with(false)?;
    /// assert_eq!((u.shape(), s.shape(), vt.shape()), (&[5, 3][..], &[3][..], &[3, 3][..]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn svd_with(&self, full_matrices: bool) -> Result<(Tensor, Tensor, Tensor)> {
        let made = DEF.run_all(&[self.into(), Arg::Bool(full_matrices)])?;
        let [u, s, vt] = <[Tensor; 3]>::try_from(made).map_err(|_| no_result(&DEF))?;
        Ok((u, s, vt))
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let a = matrices(args, 0)?;
    let k = a.rows.min(a.columns);
    let (of_u, of_v) = if args.bool(1)? { (a.rows, a.columns) } else { (k, k) };
    let u = Plan::one(a.dtype, a.with(&[a.rows, of_u]), a.dtype, Strides::Contiguous);
    let s = u.and(a.with(&[k]), a.dtype.to_real(), Strides::Contiguous);
    Ok(s.and(a.with(&[of_v, a.columns]), a.dtype, Strides::Contiguous))
}

/// With `F` of `1 / (Sⱼ² - Sᵢ²)` off the diagonal and 0 on it, and `skew(X) = X - Xᴴ`:
/// `gA = U [(F ∘ skew(Uᴴ gU)) S + S (F ∘ skew(Vᴴ gV)) + diag(gS)] Vᴴ + (I - U Uᴴ) gU S⁻¹ Vᴴ + U S⁻¹ gVᴴ (I - V Vᴴ)`. For complex
/// matrices `gU` includes the gradient of the phases of both vectors, and `i Im(diag(Uᴴ gU)) / S` is added to `gS`.
fn derivative(b: &Backward<'_>) -> Result<Tensor> {
    let (mut u, s, mut vt) = (b.output(0)?, b.output(1)?, b.output(2)?);
    let (m, n, k) = (u.dim(-2)?, vt.dim(-1)?, s.dim(-1)?);
    let (is_u, is_v) = (b.has_grad(0), b.has_grad(2));
    if b.bool(1)? && m != n {
        if is_u || is_v {
            let reason = "the singular vectors of `full_matrices` beyond the singular values are not unique; call `svd_with(false)`";
            return Err(AutogradError::Missing { op: "svd".into(), reason: reason.into() }.into());
        }
        (u, vt) = (u.narrow(-1, 0, k)?, vt.narrow(-2, 0, k)?);
    }
    let is_complex = u.dtype().is_complex();
    let mut of_u = b.grad(0)?.clone();
    if is_complex && (is_u || is_v) {
        // A pair of vectors has one phase: gVᴴ has the conjugates of the gradients of V.
        let both = phase_gradient(&u, &of_u)?.add(&phase_gradient(&h(&vt)?, &h(b.grad(2)?)?)?)?;
        of_u = with_phase(&of_u, &u, &both)?;
    }
    let is_u = is_u || is_complex && is_v;
    let mut inner = b.grad(1)?.diag_embed()?;
    let (row, column) = (s.unsqueeze(-2)?, s.unsqueeze(-1)?);
    let skew = |x: Tensor| x.sub(&h(&x)?);
    if is_u || is_v {
        let factors = gaps(&s.square()?)?;
        if is_u {
            let projected = h(&u)?.matmul(&of_u)?;
            if is_complex {
                let phases = projected.diagonal_with(0, -2, -1)?.imag()?.div(&s)?.diag_embed()?;
                inner = Tensor::complex(&inner, &phases)?;
            }
            inner = inner.add(&skew(projected)?.mul(&factors)?.mul(&row)?)?;
        }
        if is_v {
            inner = inner.add(&skew(vt.matmul(&h(b.grad(2)?)?)?)?.mul(&factors)?.mul(&column)?)?;
        }
    }
    let mut made = u.matmul(&inner)?.matmul(&vt)?;
    if is_u && m > k {
        let rest = of_u.sub(&u.matmul(&h(&u)?.matmul(&of_u)?)?)?;
        made = made.add(&rest.div(&row)?.matmul(&vt)?)?;
    }
    if is_v && n > k {
        let rest = b.grad(2)?.sub(&b.grad(2)?.matmul(&h(&vt)?)?.matmul(&vt)?)?;
        made = made.add(&u.matmul(&rest.div(&column)?)?)?;
    }
    Ok(made)
}

/// The sizes of the samples of `svd` and `svdvals`, followed by `rest`. With square matrices alone, `full_matrices` changes
/// nothing.
pub(super) fn samples(rest: &[SampleArg]) -> Vec<Sample> {
    let sizes: [&[usize]; 10] = [
        &[1, 1],
        &[3, 3],
        &[5, 3],
        &[3, 4],
        &[2, 3, 3],
        &[2, 2, 3, 2],
        &[0, 0],
        &[2, 0],
        &[0, 2],
        &[0, 3, 2],
    ];
    let values = |sizes: &[usize]| {
        // Distinct singular values: those of a matrix with a large diagonal are close.
        let scales = [3.0, -1.0, 0.5, 1.0, 0.25, -4.0, 2.0, 0.75, 6.0, -0.5, 1.5, 0.1, -2.5];
        tensor(sizes, Fill::Values(scales.to_vec()))
    };
    let args = |sizes: &[usize]| [values(sizes)].into_iter().chain(rest.iter().cloned()).collect::<Vec<_>>();
    let reason = "the error of each value is relative to the largest one";
    sizes.iter().map(|sizes| sample(args(sizes)).tolerance_factor(10.0, reason)).collect()
}

/// `svd`
pub static DEF: OpDef = OpDef::new(
    "svd(Tensor self, bool full_matrices=True) -> (Tensor, Tensor, Tensor)",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0, saves_outputs: 0b111, formula: |b, g| g.set(0, || derivative(b)) },
    || {
        let mut all = samples(&[SampleArg::Bool(false)]);
        all.extend(samples(&[SampleArg::Bool(true)]).into_iter().map(|s| Sample { smooth: false, ..s }));
        all
    },
)
.dtypes(Dtypes::F32_F64)
.errors(|| {
    let call = |a, message| error([a, SampleArg::Bool(true)], message);
    vec![
        call(plain(&[3]), "a matrix or a batch of matrices"),
        call(fixed(&[2, 2], DType::I64, Fill::Index(3)), "f32, f64, c64 or c128"),
        call(tensor(&[1, 1], Fill::Values(vec![f64::INFINITY])), "finite elements"),
    ]
})
.with(OpFlags::COMPLEX)
.in_library(LIBRARY);
