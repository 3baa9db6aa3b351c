//! `pinv`
//!
//! Arguments:
//! - `rtol`: singular values up to this factor of the largest count as 0; None for a bound from the sizes and the dtype.
//! - `atol`: singular values up to this one count as 0; None for 0.

use super::matrix::{LIBRARY, cutoff, h, matrices, optional_float};
use crate::autograd::Backward;
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{self as samples, Fill, SampleArg, error, fixed, plain, sample};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The pseudoinverse (Moore-Penrose) of each matrix, `[.., m, n]` of f32, f64, c64 or c128, from its singular values. Those at most
    /// `max(m, n) * eps` times the largest one count as 0, where `eps` is that of the dtype.
    ///
    /// The gradient is that of G. Golub and V. Pereyra, 1973, for a rank that is constant near the matrix; where the rank
    /// changes, the pseudoinverse is not continuous. The kernels are those of the library `keyway-linalg`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[2.0f64, 0.0], [0.0, 0.0], [0.0, 4.0]])?;
    /// assert_eq!(a.pinv()?.mul(4)?.round()?.to_vec::<f64>()?, [2.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::svd`].
    #[doc(alias = "linalg_pinv")]
    pub fn pinv(&self) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::None, Arg::None])
    }

    /// [`Tensor::pinv`], where singular values at most `max(atol, rtol * largest)` count as 0.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[2.0f64, 0.0], [0.0, 0.5]])?;
    /// assert_eq!(a.pinv_with(1.0, 0.0)?.mul(4)?.round()?.to_vec::<f64>()?, [2.0, 0.0, 0.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn pinv_with(&self, atol: f64, rtol: f64) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Float(atol), Arg::Float(rtol)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let a = matrices(args, 0)?;
    optional_float(args, 1)?;
    optional_float(args, 2)?;
    Ok(Plan::one(a.dtype, a.with(&[a.columns, a.rows]), a.dtype, Strides::Contiguous))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let a = tensor(args, 0)?;
    let (u, s, vt) = a.svd_with(false)?;
    let small = s.le(&cutoff(&a, &s, optional_float(args, 1)?, optional_float(args, 2)?)?)?;
    // The reciprocal of infinity is 0.
    let inverted = s.masked_fill(&small, f64::INFINITY)?.reciprocal()?;
    h(&vt)?.mul(&inverted.unsqueeze(-2)?)?.matmul(&h(&u)?)
}

/// With `P = A⁺`: `-Pᴴ g Pᴴ + (I - A P) gᴴ P Pᴴ + Pᴴ P gᴴ (I - P A)`, the adjoint of the differential of Golub and Pereyra.
fn derivative(b: &Backward<'_>) -> Result<Tensor> {
    let (a, p, grad) = (b.input(0)?, b.output(0)?, b.grad(0)?);
    let (ph, gh) = (h(&p)?, h(grad)?);
    let left = gh.matmul(&p.matmul(&ph)?)?;
    let right = ph.matmul(&p)?.matmul(&gh)?;
    let inner = ph.matmul(grad)?.matmul(&ph)?;
    let left = left.sub(&a.matmul(&p.matmul(&left)?)?)?;
    let right = right.sub(&right.matmul(&p)?.matmul(&a)?)?;
    left.add(&right)?.sub(&inner)
}

/// `pinv`
pub static DEF: OpDef = OpDef::new(
    "pinv(Tensor self, float? atol=None, float? rtol=None) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0b1, saves_outputs: 0b1, formula: |b, g| g.set(0, || derivative(b)) },
    || {
        let sizes: [&[usize]; 9] =
            [&[1, 1], &[4, 4], &[5, 3], &[3, 4], &[2, 3, 3], &[2, 2, 3, 2], &[0, 0], &[2, 0], &[0, 3, 2]];
        let matrix = |sizes: &[usize]| samples::tensor(sizes, Fill::Permuted);
        let none = || [SampleArg::None, SampleArg::None];
        sizes.iter().map(|sizes| sample([matrix(sizes)].into_iter().chain(none()))).collect()
    },
)
.dtypes(Dtypes::F32_F64)
.errors(|| {
    let call = |a, message| error([a, SampleArg::None, SampleArg::None], message);
    vec![
        call(plain(&[3]), "a matrix or a batch of matrices"),
        call(fixed(&[2, 2], DType::I64, Fill::Index(3)), "f32, f64, c64 or c128"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::COMPLEX)
.in_library(LIBRARY);
