//! `count_nonzero`

use super::sum;
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, OpDef};
use crate::ops::rules::{keeping, reduced_dims, reduced_sizes};
use crate::ops::sample::{Fill, SampleArg, error, plain, sample, tensor as filled};
use crate::tensor::IntoDims;
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// The number of nonzero elements over `dims`, or of all elements with `..`, as i64. NaN counts as nonzero.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([[1, 0], [2, 3]])?;
    /// assert_eq!(x.count_nonzero(1)?.to_vec::<i64>()?, [1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or given twice.
    pub fn count_nonzero(&self, dims: impl IntoDims) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(&dims.into_dims())])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    let mask = reduced_dims(args, 1, t.ndim())?;
    Ok(keeping(t, t.dtype(), reduced_sizes(t.sizes(), mask, false), DType::I64))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let x = tensor(args, 0)?;
    let counted = if x.dtype() == DType::BOOL { x } else { x.ne(0)? };
    sum::DEF.run(&[(&counted).into(), args.get(1), Arg::Bool(false)])
}

/// `count_nonzero`
pub static DEF: OpDef = OpDef::new(
    "count_nonzero(Tensor self, int[]? dim=None) -> Tensor",
    Rule::Structured(rule),
    Derivative::NotDifferentiable,
    || {
        let call = |sizes: &[usize], dims: Option<&[i64]>| {
            let values = Fill::Values(vec![0.0, 1.0, -2.0, 0.0, 3.0, -0.0, f64::NAN]);
            let dims = dims.map_or(SampleArg::None, |dims| SampleArg::Ints(dims.to_vec()));
            sample([filled(sizes, values), dims])
        };
        vec![
            call(&[], None),
            call(&[7], None),
            call(&[3, 4], Some(&[])),
            call(&[3, 4], Some(&[-1])),
            call(&[2, 3, 4], Some(&[0, 2])),
            call(&[2, 3, 2, 2], Some(&[1, -1])),
            call(&[2, 1, 2, 3, 2], Some(&[0, 3])),
            call(&[0, 3], Some(&[0])),
        ]
    },
)
.errors(|| {
    let call = |sizes: &[usize], dims: &[i64], message| {
        error([plain(sizes), SampleArg::Ints(dims.to_vec())], message)
    };
    vec![call(&[3], &[1], "out of range"), call(&[3, 3], &[0, -2], "different dimensions")]
})
.decomposed(|args| one(compose(args)));
