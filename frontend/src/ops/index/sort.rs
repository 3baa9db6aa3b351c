//! `sort`

use crate::DType;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::index::geometry::{kept, zeros};
use crate::ops::rules::has_order;
use crate::ops::sample::{Fill, Sample, SampleArg, error, plain, sample, tensor};
use crate::tensor::Int;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Sorts along `dim` in ascending order; returns the values and their indices. NaN sorts last. The sort is stable.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (values, indices) = Tensor::new([3, 1, 2])?.sort(0)?;
    /// assert_eq!(values.to_vec::<i32>()?, [1, 2, 3]);
    /// assert_eq!(indices.to_vec::<i64>()?, [1, 2, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range.
    #[doc(alias = "sort_last_dim")]
    pub fn sort(&self, dim: impl Int) -> Result<(Tensor, Tensor)> {
        self.sort_with(dim, false, false)
    }

    /// [`Tensor::sort`] in ascending or descending order. The sort is stable, with or without `stable`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (values, indices) = Tensor::new([1, 3, 2])?.sort_with(0, true, true)?;
    /// assert_eq!((values.to_vec::<i32>()?, indices.to_vec::<i64>()?), (vec![3, 2, 1], vec![1, 2, 0]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn sort_with(&self, dim: impl Int, descending: bool, stable: bool) -> Result<(Tensor, Tensor)> {
        DEF.run_pair(&[self.into(), Arg::Int(dim.to_i64()), Arg::Bool(descending), Arg::Bool(stable)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    has_order(args, 0, t.dtype())?;
    args.dim(1, t.ndim())?;
    let sizes = Dims::from_slice(t.sizes());
    let strides = kept(t, &sizes);
    Ok(Plan::one(t.dtype(), sizes.clone(), t.dtype(), strides.clone()).and(sizes, DType::I64, strides))
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], dim, descending| {
        let values = tensor(sizes, Fill::Distinct(-20.0, 20.0));
        sample([values, SampleArg::Int(dim), SampleArg::Bool(descending), SampleArg::Bool(true)])
    };
    vec![
        call(&[], 0, false),
        call(&[7], 0, false),
        call(&[7], -1, true),
        call(&[3, 4], 0, false),
        call(&[2, 3, 4], 1, true),
        call(&[2, 3, 2, 5], 3, false),
        call(&[2, 1, 2, 3, 2], -2, true),
        call(&[0, 3], 0, false),
    ]
}

/// `sort`
pub static DEF: OpDef = OpDef::new(
    "sort(Tensor self, int dim=-1, bool descending=False, bool stable=False) -> (Tensor, Tensor)",
    Rule::Structured(rule),
    Derivative::Formula {
        saves: 0,
        saves_outputs: 0b10,
        formula: |b, g| {
            g.set(0, || zeros(b.grad(0)?, b.sizes(0))?.scatter(b.int(1)?, &b.output(1)?, b.grad(0)?))
        },
    },
    samples,
)
.forms(Forms::Out)
.errors(|| {
    let no = SampleArg::Bool(false);
    vec![error([plain(&[3]), SampleArg::Int(1), no.clone(), no], "out of range")]
})
.with(OpFlags::EXACT);
