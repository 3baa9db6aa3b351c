//! `eigvalsh`

use super::eigh;
use super::matrix::{LIBRARY, square};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{decomposed, one, tensor};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, Registration};
use crate::ops::sample::{error, plain};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Part, Plan, Rule, Strides};

impl Tensor {
    /// The eigenvalues of each symmetric matrix, `[.., n, n]` of f32 or f64, in ascending order, without the eigenvectors of
    /// [`Tensor::eigh`]. With a gradient the vectors are computed too. The gradient is finite for equal eigenvalues.
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
    Ok(Plan::one(a.dtype, a.with(&[a.rows]), a.dtype, Strides::Contiguous))
}

/// `eigvalsh`
pub static DEF: OpDef = OpDef {
    schema: "eigvalsh(Tensor self) -> Tensor",
    rule: Rule::Structured(rule),
    decomposition: decomposed(
        |args| one(tensor(args, 0).and_then(|a| Ok(a.eigh()?.0))),
        &[Part::new("eigh")],
    ),
    derivative: Derivative::Composite,
    forms: Forms::New,
    dtypes: Dtypes::F32_F64,
    samples: eigh::samples,
    errors: || {
        vec![
            error([plain(&[3])], "a matrix or a batch of matrices"),
            error([plain(&[2, 3])], "a square matrix"),
        ]
    },
    registration: Registration::new(),
}
.in_library(LIBRARY);
