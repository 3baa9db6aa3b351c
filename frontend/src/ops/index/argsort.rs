//! `argsort`

use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, OpDef};
use crate::ops::index::geometry::kept;
use crate::ops::sample::{Fill, SampleArg, error, plain, sample, tensor as filled};
use crate::tensor::Int;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// The permutation that sorts along `dim`: the indices that [`Tensor::sort`] returns.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([3, 1, 2])?.argsort(0)?.to_vec::<i64>()?, [1, 2, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range.
    #[doc(alias = "arg_sort_last_dim")]
    pub fn argsort(&self, dim: impl Int) -> Result<Tensor> {
        self.argsort_with(dim, false, false)
    }

    /// [`Tensor::argsort`] in ascending or descending order. The sort is stable, with or without `stable`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1, 3, 2])?;
    /// assert_eq!(x.argsort_with(0, true, true)?.to_vec::<i64>()?, [1, 2, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn argsort_with(&self, dim: impl Int, descending: bool, stable: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64()), Arg::Bool(descending), Arg::Bool(stable)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    args.dim(1, t.ndim())?;
    args.bool(2)?;
    args.bool(3)?;
    Ok(Plan::one(t.dtype(), Dims::from_slice(t.sizes()), DType::I64, kept(t, t.sizes())))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (_, places) = tensor(args, 0)?.sort_with(args.int(1)?, args.bool(2)?, args.bool(3)?)?;
    Ok(places)
}

/// `argsort`
pub static DEF: OpDef = OpDef::new(
    "argsort(Tensor self, int dim=-1, bool descending=False, bool stable=False) -> Tensor",
    Rule::Structured(rule),
    Derivative::NotDifferentiable,
    || {
        let call = |sizes: &[usize], dim, descending| {
            let values = filled(sizes, Fill::Distinct(-20.0, 20.0));
            sample([values, SampleArg::Int(dim), SampleArg::Bool(descending), SampleArg::Bool(true)])
        };
        vec![
            call(&[], 0, false),
            call(&[7], -1, true),
            call(&[3, 4], 0, false),
            call(&[2, 3, 4], 1, true),
            call(&[2, 3, 2, 2], -2, false),
            call(&[2, 1, 2, 3, 2], 3, true),
            call(&[0, 3], 0, false),
        ]
    },
)
.errors(|| {
    let no = SampleArg::Bool(false);
    vec![error([plain(&[3]), SampleArg::Int(1), no.clone(), no], "out of range")]
})
.decomposed(|args| one(compose(args)));
