//! `solve`

use super::matrix::{LIBRARY, solution, t};
use crate::autograd::{Backward, Grads};
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{self as samples, Fill, Sample, SampleArg, error, fixed, plain, sample};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The solution `X` of `A X = B` for each square matrix `A` (`self`, `[.., n, n]`) and `B` (`[.., n, k]`), which have one
    /// dtype, f32, f64, c64 or c128; leading dimensions broadcast. As in PyTorch, `b` is one vector if it has one dimension, and a batch of
    /// vectors if its shape is that of `self` without the last dimension.
    ///
    /// By [`Tensor::lu_factor`] and [`Tensor::lu_solve`]. The gradient is `gB = A⁻ᵀ gX`, `gA = -gB Xᵀ` (Giles 2008, 2.3.1). The
    /// kernels are those of the library `keyway-linalg`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[1.0f32, 2.0], [2.0, 6.0]])?;
    /// let b = Tensor::new([3.0f32, 8.0])?;
    /// assert_eq!(a.solve(&b)?.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square, or whose rows do not match those of `b`; different dtypes; leading dimensions that do not
    /// broadcast. A singular matrix: the error names its index in the batch. NaN and infinities lead to NaN.
    #[doc(alias = "linalg_solve")]
    pub fn solve(&self, b: &Tensor) -> Result<Tensor> {
        let (a, rank) = (self.shape(), self.rank());
        if b.rank() == 1 || (rank == b.rank() + 1 && *b.shape() == a[..rank - 1]) {
            return self.solve_with(&b.unsqueeze(-1)?, true)?.squeeze(-1);
        }
        self.solve_with(b, true)
    }

    /// [`Tensor::solve`] of a `b` of two or more dimensions; without `left` the solution of `X A = B`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[1.0f32, 2.0], [2.0, 6.0]])?;
    /// let b = Tensor::new([[3.0f32, 8.0]])?;
    /// assert_eq!(a.solve_with(&b, false)?.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn solve_with(&self, b: &Tensor, left: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), b.into(), Arg::Bool(left)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (dtype, sizes) = solution(args, [0, 1], args.bool(2)?)?;
    Ok(Plan::one(dtype, sizes, dtype, Strides::Contiguous))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (lu, pivots) = tensor(args, 0)?.lu_factor()?;
    lu.lu_solve_with(&pivots, &tensor(args, 1)?, args.bool(2)?, false)
}

fn derivative(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    let (a, x, left) = (b.input(0)?, b.output(0)?, b.bool(2)?);
    let of_b = t(&a)?.solve_with(b.grad(0)?, left)?;
    g.set(0, || if left { of_b.matmul(&t(&x)?)?.neg() } else { t(&x)?.matmul(&of_b)?.neg() })?;
    g.set(1, || Ok(of_b.clone()))
}

fn all_samples() -> Vec<Sample> {
    let call = |a: &[usize], b: &[usize], left| {
        let a = samples::tensor(a, Fill::Permuted);
        sample([a, plain(b), SampleArg::Bool(left)])
    };
    vec![
        call(&[1, 1], &[1, 1], true),
        call(&[4, 4], &[4, 2], true),
        call(&[3, 3], &[2, 3], false),
        call(&[2, 3, 3], &[2, 3, 2], true),
        call(&[3, 3], &[2, 3, 1], true),
        call(&[2, 1, 2, 2], &[3, 2, 2], true),
        call(&[0, 0], &[0, 2], true),
        call(&[3, 3], &[3, 0], true),
        call(&[0, 2, 2], &[1, 2, 1], true),
    ]
}

/// `solve`
pub static DEF: OpDef = OpDef::new(
    "solve(Tensor self, Tensor b, bool left=True) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0b1, saves_outputs: 0b1, formula: derivative },
    all_samples,
)
.dtypes(Dtypes::F32_F64)
.errors(|| {
    let call = |a, b, message| error([a, b, SampleArg::Bool(true)], message);
    let singular = || samples::tensor(&[2, 2, 2], Fill::Values(vec![1.0, 0.0, 0.0, 1.0, 1.0, 2.0, 1.0, 2.0]));
    vec![
        call(plain(&[2, 3]), plain(&[2, 1]), "a square matrix"),
        call(plain(&[2, 2]), plain(&[3, 1]), "of 2 rows"),
        call(plain(&[2, 2]), fixed(&[2, 1], DType::F64, Fill::Index(3)), "f32, as `self`"),
        call(singular(), plain(&[2, 1]), "a singular one: element [1, 1] of U is 0, at batch index [1]"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::HOLOMORPHIC)
.in_library(LIBRARY);
