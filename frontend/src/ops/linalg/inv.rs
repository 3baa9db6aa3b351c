//! `inv`

use super::matrix::{LIBRARY, square, t};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{self as samples, Fill, error, plain, sample};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// The inverse of each square matrix, `[.., n, n]` of f32, f64, c64 or c128. [`Tensor::solve`] is faster and more accurate than a
    /// product with the inverse.
    ///
    /// The gradient is `-A⁻ᵀ g A⁻ᵀ` (Giles 2008, 2.2.3). The kernels are those of the library `keyway-linalg`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[2.0f32, 0.0], [0.0, 4.0]])?;
    /// assert_eq!(a.inv()?.to_vec::<f32>()?, [0.5, 0.0, 0.0, 0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square; another dtype. A singular matrix: the error names its index in the batch.
    #[doc(alias = "inverse")]
    #[doc(alias = "linalg_inv")]
    pub fn inv(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let a = square(args, 0)?;
    Ok(Plan::one(a.dtype, a.with(&[a.rows, a.rows]), a.dtype, Strides::Contiguous))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let a = tensor(args, 0)?;
    let n = a.dim(-1)?;
    a.solve_with(&Tensor::eye_with(n, n, (a.dtype(), a.device()))?, true)
}

/// `inv`
pub static DEF: OpDef = OpDef::new(
    "inv(Tensor self) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_output(|b, g| {
        g.set(0, || {
            let inverse = t(&b.output(0)?)?;
            inverse.matmul(b.grad(0)?)?.matmul(&inverse)?.neg()
        })
    }),
    || {
        let sizes: [&[usize]; 7] =
            [&[1, 1], &[4, 4], &[2, 3, 3], &[2, 1, 2, 2], &[0, 0], &[0, 3, 3], &[2, 0, 0]];
        let matrix = |sizes: &[usize]| samples::tensor(sizes, Fill::Permuted);
        sizes.iter().map(|sizes| sample([matrix(sizes)])).collect()
    },
)
.dtypes(Dtypes::F32_F64)
.errors(|| {
    let singular = samples::tensor(&[2, 1, 1], Fill::Values(vec![1.0, 0.0]));
    vec![
        error([plain(&[3])], "a matrix or a batch of matrices"),
        error([plain(&[2, 3])], "a square matrix"),
        error([singular], "at batch index [1]"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::HOLOMORPHIC)
.in_library(LIBRARY);
