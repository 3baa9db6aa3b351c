//! `eigvalsh`

use super::eigh;
use super::matrix::{LIBRARY, square};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{error, plain};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// The eigenvalues of each symmetric or Hermitian matrix, `[.., n, n]` of f32, f64, c64 or c128, real and in ascending order,
    /// without the eigenvectors of [`Tensor::eigh`]. With a gradient the vectors are computed too. The gradient is finite for equal eigenvalues.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[0.0f64, 2.0], [2.0, 3.0]])?;
    /// assert_eq!(a.eigvalsh()?.round()?.to_vec::<f64>()?, [-1.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::eigh`].
    #[doc(alias = "linalg_eigvalsh")]
    pub fn eigvalsh(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let a = square(args, 0)?;
    Ok(Plan::one(a.dtype, a.with(&[a.rows]), a.dtype.to_real(), Strides::Contiguous))
}

/// `eigvalsh`
pub static DEF: OpDef = OpDef::new(
    "eigvalsh(Tensor self) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    eigh::samples,
)
.dtypes(Dtypes::F32_F64)
.errors(|| {
    vec![error([plain(&[3])], "a matrix or a batch of matrices"), error([plain(&[2, 3])], "a square matrix")]
})
.decomposed(|args| one(tensor(args, 0).and_then(|a| Ok(a.eigh()?.0))))
.with(OpFlags::COMPLEX)
.in_library(LIBRARY);
