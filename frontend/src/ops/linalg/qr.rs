//! `qr`
//!
//! Arguments:
//! - `mode`: `reduced` or `complete`.

use super::matrix::{LIBRARY, h, half_lower, matrices};
use super::solve_triangular::solved;
use crate::autograd::{AutogradError, Backward};
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::wrong_value;
use crate::ops::sample::{Fill, Sample, SampleArg, error, fixed, plain, sample, tensor};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The reduced QR decomposition of each matrix, `[.., m, n]` of f32, f64, c64 or c128: `A = Q R`, with `k = min(m, n)` orthonormal
    /// columns of `Q` (`[.., m, k]`) and an upper triangular `R` (`[.., k, n]`).
    ///
    /// The diagonal of `R` is real and 0 or more, so the factors of a matrix of full rank are unique. LAPACK, and thus PyTorch and NumPy,
    /// leave the signs and phases to the algorithm. Elements that are NaN or infinite lead to NaN.
    ///
    /// The gradient (S. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions", 2010; D. Roberts and
    /// L. Roberts, "QR and LQ decomposition matrix backpropagation algorithms", 2020, for `m < n`) needs linearly independent
    /// first `k` columns; it is an error where the diagonal of `R` has a zero. The kernels are those of the library
    /// `keyway-linalg`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (q, r) = Tensor::new([[0.0f64, 2.0], [3.0, 4.0]])?.qr()?;
    /// assert_eq!(q.round()?.to_vec::<f64>()?, [0.0, 1.0, 1.0, 0.0]);
    /// assert_eq!(r.round()?.to_vec::<f64>()?, [3.0, 4.0, 0.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of fewer than two dimensions; another dtype.
    #[doc(alias = "linalg_qr")]
    pub fn qr(&self) -> Result<(Tensor, Tensor)> {
        self.qr_with("reduced")
    }

    /// [`Tensor::qr`]; with the mode `"complete"`, `Q` is `[.., m, m]` and `R` is `[.., m, n]`. The further columns of `Q` are any
    /// orthonormal basis of the rest, so they have no gradient if `m > n`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (q, r) = Tensor::new([[0.0f32], [3.0]])?.qr_with("complete")?;
    /// assert_eq!((q.shape(), r.shape()), (&[2, 2][..], &[2, 1][..]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; another mode.
    pub fn qr_with(&self, mode: &str) -> Result<(Tensor, Tensor)> {
        DEF.run_pair(&[self.into(), Arg::Str(mode)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let a = matrices(args, 0)?;
    let inner = match args.str(1)? {
        "reduced" => a.rows.min(a.columns),
        "complete" => a.rows,
        _ => return Err(wrong_value(args, 1, "\"reduced\" or \"complete\"".to_string())),
    };
    let (q, r) = (a.with(&[a.rows, inner]), a.with(&[inner, a.columns]));
    Ok(Plan::one(a.dtype, q, a.dtype, Strides::Contiguous).and(r, a.dtype, Strides::Contiguous))
}

/// For `m >= n`: `gA = (gQ + Q S) R⁻ᴴ`, where `S` is the Hermitian matrix with the lower triangle of `M = R gRᴴ - gQᴴ Q`. For
/// `m < n`, with the first `m` columns `A₁` and `R₁` and the rest `A₂` and `R₂`: `gA₂ = Q gR₂`, and `A₁` has the gradient of the
/// square case with `gQ + A₂ gR₂ᴴ`.
fn derivative(b: &Backward<'_>) -> Result<Tensor> {
    let (q, r) = (b.output(0)?, b.output(1)?);
    let (&[.., m, inner], &[.., n]) = (q.shape(), r.shape()) else { return Ok(r) };
    if inner > n {
        let reason = "the columns of a complete `Q` beyond those of the matrix are not unique; use the mode \"reduced\"";
        return Err(AutogradError::Missing { op: "qr".into(), reason: reason.into() }.into());
    }
    let (of_q, of_r) = (b.grad(0)?.clone(), b.grad(1)?.clone());
    if m >= n {
        return square(&q, &r, &of_q, &of_r);
    }
    let (first, rest) = (r.narrow(-1, 0, m)?, r.narrow(-1, m, n - m)?);
    let (of_first, of_rest) = (of_r.narrow(-1, 0, m)?, of_r.narrow(-1, m, n - m)?);
    // A₂ is Q R₂.
    let of_q = of_q.add(&q.matmul(&rest)?.matmul(&h(&of_rest)?)?)?;
    Tensor::cat(&[&square(&q, &first, &of_q, &of_first)?, &q.matmul(&of_rest)?], -1)
}

fn square(q: &Tensor, r: &Tensor, of_q: &Tensor, of_r: &Tensor) -> Result<Tensor> {
    let m = r.matmul(&h(of_r)?)?.sub(&h(of_q)?.matmul(q)?)?;
    let lower = half_lower(&m)?;
    let s = lower.add(&h(&lower)?)?;
    solved(&h(r)?, &of_q.add(&q.matmul(&s)?)?, [false, false, false])
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], mode| sample([tensor(sizes, Fill::Permuted), SampleArg::Str(mode)]);
    let tall = Sample { smooth: false, ..call(&[5, 3], "complete") };
    vec![
        call(&[1, 1], "reduced"),
        call(&[4, 4], "reduced"),
        call(&[5, 3], "reduced"),
        call(&[3, 5], "reduced"),
        call(&[2, 3, 3], "reduced"),
        call(&[2, 2, 3, 2], "reduced"),
        call(&[3, 4], "complete"),
        tall,
        call(&[0, 0], "reduced"),
        call(&[2, 0], "reduced"),
        Sample { smooth: false, ..call(&[2, 0], "complete") },
        call(&[0, 2], "reduced"),
        call(&[0, 3, 2], "reduced"),
        call(&[9, 9], "reduced"),
    ]
}

/// `qr`
pub static DEF: OpDef = OpDef::new(
    "qr(Tensor self, str mode='reduced') -> (Tensor, Tensor)",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0, saves_outputs: 0b11, formula: |b, g| g.set(0, || derivative(b)) },
    samples,
)
.dtypes(Dtypes::F32_F64)
.errors(|| {
    let call = |a, mode, message| error([a, SampleArg::Str(mode)], message);
    vec![
        call(plain(&[3]), "reduced", "a matrix or a batch of matrices"),
        call(plain(&[2, 2]), "raw", "\"reduced\" or \"complete\""),
        call(fixed(&[2, 2], DType::I64, Fill::Index(3)), "reduced", "f32, f64, c64 or c128"),
    ]
})
.with(OpFlags::COMPLEX)
.in_library(LIBRARY);
