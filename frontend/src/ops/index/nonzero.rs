//! `nonzero`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, OpDef};
use crate::ops::sample::{Fill, sample, tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// The indices of the nonzero elements, in row-major order, as i64 `[count, rank]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![0, 5, 6, 0], (2, 2))?;
    /// assert_eq!(a.nonzero()?.to_vec::<i64>()?, [0, 1, 1, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    #[doc(alias = "argwhere")]
    pub fn nonzero(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    let mut plan = Plan::one(t.dtype(), Dims::from_slice(t.sizes()), t.dtype(), Strides::Contiguous);
    plan.contiguous = 0b1;
    Ok(plan)
}

/// `nonzero`
pub static DEF: OpDef = OpDef::new(
    "nonzero(Tensor self) -> Tensor",
    Rule::Allocates(rule),
    Derivative::NotDifferentiable,
    || {
        let shapes: [&[usize]; 7] =
            [&[], &[7], &[3, 4], &[0, 3], &[2, 3, 4], &[2, 3, 2, 5], &[2, 1, 2, 3, 2]];
        shapes.iter().map(|s| sample([tensor(s, Fill::Values(vec![0.0, 1.0, -2.0, 0.0, 3.0]))])).collect()
    },
);
