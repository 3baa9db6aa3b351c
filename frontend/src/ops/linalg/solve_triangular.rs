//! `solve_triangular`
//!
//! Arguments:
//! - `unitriangular`: whether the diagonal counts as ones.

use super::matrix::{LIBRARY, solution, t};
use crate::DType;
use crate::Tensor;
use crate::autograd::{Backward, Grads};
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{Fill, Sample, SampleArg, error, fixed, plain, sample, tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The solution `X` of `A X = B` for each triangular matrix `A` (`self`, `[.., n, n]`) and `B` (`[.., n, k]`), which have
    /// one dtype, f32, f64, c64 or c128; leading dimensions broadcast. With `upper` the upper triangle of `self` is read, else the lower
    /// one; the gradient of the other triangle is 0.
    ///
    /// The kernels are those of the library `keyway-linalg`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[2.0f32, 0.0], [1.0, 4.0]])?;
    /// let b = Tensor::new([[2.0f32], [9.0]])?;
    /// assert_eq!(a.solve_triangular(&b, false)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square, or whose rows do not match those of `b`; different dtypes; leading dimensions that do not
    /// broadcast. A zero on the diagonal: the error names its row, and the index of the matrix in the batch.
    #[doc(alias = "triangular_solve")]
    #[doc(alias = "linalg_solve_triangular")]
    pub fn solve_triangular(&self, b: &Tensor, upper: bool) -> Result<Tensor> {
        self.solve_triangular_with(b, upper, true, false)
    }

    /// [`Tensor::solve_triangular`]; without `left` the solution of `X A = B`. With `unitriangular` the diagonal of `self` is
    /// taken to be 1 and is not read.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[2.0f32, 0.0], [1.0, 4.0]])?;
    /// let b = Tensor::new([[3.0f32, 4.0]])?;
    /// assert_eq!(a.solve_triangular_with(&b, false, false, false)?.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn solve_triangular_with(
        &self,
        b: &Tensor,
        upper: bool,
        left: bool,
        unitriangular: bool,
    ) -> Result<Tensor> {
        solved(self, b, [upper, left, unitriangular])
    }
}

/// The op with the flags `upper`, `left`, `unitriangular`.
pub(super) fn solved(a: &Tensor, b: &Tensor, flags: [bool; 3]) -> Result<Tensor> {
    let [upper, left, unit] = flags.map(Arg::Bool);
    DEF.run(&[a.into(), b.into(), upper, left, unit])
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (dtype, sizes) = solution(args, [0, 1], args.bool(3)?)?;
    Ok(Plan::one(dtype, sizes, dtype, Strides::Contiguous))
}

/// `gB = A⁻ᵀ gX`, and `gA = -gB Xᵀ` in the triangle that is read (Giles 2008, 2.3.1); for `X A = B` likewise.
fn derivative(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    let (a, x) = (b.input(0)?, b.output(0)?);
    let (upper, left, unit) = (b.bool(2)?, b.bool(3)?, b.bool(4)?);
    let of_b = solved(&t(&a)?, b.grad(0)?, [!upper, left, unit])?;
    g.set(0, || {
        let product = if left { of_b.matmul(&t(&x)?)? } else { t(&x)?.matmul(&of_b)? };
        let (product, skipped) = (product.neg()?, i64::from(unit));
        if upper { product.triu_with(skipped) } else { product.tril_with(-skipped) }
    })?;
    g.set(1, || Ok(of_b.clone()))
}

fn samples() -> Vec<Sample> {
    let call = |a: &[usize], b: &[usize], flags: [bool; 3]| {
        let a = tensor(a, Fill::Definite);
        let call = sample([a, plain(b)].into_iter().chain(flags.map(SampleArg::Bool)));
        call.tolerance_factor(20.0, "substitution amplifies rounding errors")
    };
    vec![
        call(&[1, 1], &[1, 1], [false, true, false]),
        call(&[4, 4], &[4, 2], [false, true, false]),
        call(&[4, 4], &[4, 3], [true, true, false]),
        call(&[3, 3], &[2, 3], [false, false, false]),
        call(&[3, 3], &[2, 3], [true, false, false]),
        call(&[3, 3], &[3, 3], [false, true, true]),
        call(&[3, 3], &[1, 3], [true, false, true]),
        call(&[2, 3, 3], &[2, 3, 2], [true, true, false]),
        call(&[3, 3], &[2, 3, 2], [false, true, false]),
        call(&[2, 1, 2, 2], &[3, 2, 2], [false, true, false]),
        call(&[0, 0], &[0, 2], [false, true, false]),
        call(&[3, 3], &[3, 0], [true, true, false]),
        call(&[0, 2, 2], &[1, 2, 1], [false, true, false]),
    ]
}

/// `solve_triangular`
pub static DEF: OpDef = OpDef::new(
    "solve_triangular(Tensor self, Tensor b, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0b1, saves_outputs: 0b1, formula: derivative },
    samples,
)
.dtypes(Dtypes::F32_F64)
.errors(|| {
    let call = |a, b, left, message| {
        let flags = [false, left, false].map(SampleArg::Bool);
        error([a, b].into_iter().chain(flags), message)
    };
    let zero = || tensor(&[2, 2, 2], Fill::Values(vec![1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 2.0, 0.0]));
    vec![
        call(plain(&[2]), plain(&[2, 1]), true, "a matrix or a batch of matrices"),
        call(plain(&[2, 3]), plain(&[2, 1]), true, "a square matrix"),
        call(plain(&[3, 3]), plain(&[3]), true, "a matrix or a batch of matrices"),
        call(plain(&[3, 3]), plain(&[2, 1]), true, "of 3 rows"),
        call(plain(&[3, 3]), plain(&[3, 1]), false, "of 3 columns"),
        call(plain(&[2, 3, 3]), plain(&[3, 3, 1]), true, "broadcast"),
        call(plain(&[2, 2]), fixed(&[2, 1], DType::F64, Fill::Index(3)), true, "f32, as `self`"),
        call(fixed(&[2, 2], DType::I64, Fill::Index(3)), plain(&[2, 1]), true, "f32, f64, c64 or c128"),
        call(zero(), plain(&[2, 1]), true, "a zero at row 1, at batch index [1]"),
    ]
})
.with(OpFlags::HOLOMORPHIC)
.in_library(LIBRARY);
