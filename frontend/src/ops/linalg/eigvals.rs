//! `eigvals`

use super::matrix::{LIBRARY, square};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// The eigenvalues of each square matrix, `[.., n, n]` of f32, f64, c64 or c128, complex, without the eigenvectors of
    /// [`Tensor::eig`]. With a gradient the vectors are computed too. The gradient is an error for a matrix without `n` linearly
    /// independent eigenvectors.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let rotation = Tensor::new([[0.0f64, -1.0], [1.0, 0.0]])?;
    /// assert_eq!(rotation.eigvals()?.imag()?.round()?.to_vec::<f64>()?, [1.0, -1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::eig`].
    #[doc(alias = "linalg_eigvals")]
    pub fn eigvals(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let a = square(args, 0)?;
    let complex = a.dtype.to_complex().unwrap_or(a.dtype);
    Ok(Plan::one(a.dtype, a.with(&[a.rows]), complex, Strides::Contiguous))
}

/// `eigvals`
pub static DEF: OpDef =
    OpDef::new("eigvals(Tensor self) -> Tensor", Rule::Structured(rule), Derivative::Composite, Vec::new)
        .dtypes(Dtypes::COMPLEX)
        .decomposed(|args| one(tensor(args, 0).and_then(|a| Ok(a.eig()?.0))))
        .with(OpFlags::COMPLEX)
        .in_library(LIBRARY);
