//! `svdvals`

use super::matrix::{LIBRARY, matrices};
use super::svd;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{error, plain};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// The singular values of each matrix, `[.., m, n]` of f32, f64, c64 or c128, in descending order, without the vectors of
    /// [`Tensor::svd`]. With a gradient the vectors are computed too. The gradient is finite for equal singular values.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[0.0f64, 2.0], [3.0, 0.0]])?;
    /// assert_eq!(a.svdvals()?.round()?.to_vec::<f64>()?, [3.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::svd`].
    #[doc(alias = "linalg_svdvals")]
    pub fn svdvals(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let a = matrices(args, 0)?;
    Ok(Plan::one(a.dtype, a.with(&[a.rows.min(a.columns)]), a.dtype.to_real(), Strides::Contiguous))
}

/// `svdvals`
pub static DEF: OpDef =
    OpDef::new("svdvals(Tensor self) -> Tensor", Rule::Structured(rule), Derivative::Composite, || {
        svd::samples(&[])
    })
    .dtypes(Dtypes::F32_F64)
    .errors(|| vec![error([plain(&[3])], "a matrix or a batch of matrices")])
    .decomposed(|args| one(tensor(args, 0).and_then(|a| Ok(a.svd_with(false)?.1))))
    .with(OpFlags::COMPLEX)
    .in_library(LIBRARY);
