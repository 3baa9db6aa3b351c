//! `cumsum`
//!
//! Arguments:
//! - `reverse`: whether to add from the end.

use crate::error::{Result, called};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::sample::{SampleArg, error, plain, sample};
use crate::tensor::Int;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The cumulative sum along `dim`. Integers and bool give i64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1i64, 2, 3])?;
    /// assert_eq!(x.cumsum(0)?.to_vec::<i64>()?, [1, 3, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range.
    pub fn cumsum(&self, dim: impl Int) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64()), Arg::Bool(false)])
    }

    /// The reversed cumulative sum along `dim`: of all elements from each one to the last.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1i64, 2, 3])?.cumsum_reversed(0)?.to_vec::<i64>()?, [6, 5, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range.
    pub fn cumsum_reversed(&self, dim: impl Int) -> Result<Tensor> {
        called("cumsum_reversed", &["self", "dim"], || {
            DEF.run(&[self.into(), Arg::Int(dim.to_i64()), Arg::Bool(true)])
        })
    }
}

/// The rule, shared with `cumprod`.
pub(super) fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    args.dim(1, t.ndim())?;
    let dtype = if t.dtype().is_inexact() { t.dtype() } else { DType::I64 };
    let mut plan = Plan::one(dtype, Dims::from_slice(t.sizes()), dtype, Strides::Like(0));
    plan.cast = 0b1;
    Ok(plan)
}

/// `cumsum`
pub static DEF: OpDef = OpDef::new(
    "cumsum(Tensor self, int dim, bool reverse=False) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| g.set(0, || DEF.run(&[b.grad(0)?.into(), b.arg(1), Arg::Bool(!b.bool(2)?)]))),
    || {
        let call = |sizes: &[usize], dim: i64, reverse: bool| {
            sample([plain(sizes), SampleArg::Int(dim), SampleArg::Bool(reverse)])
        };
        vec![
            call(&[], 0, false),
            call(&[5], 0, false),
            call(&[3, 4], 0, true),
            call(&[3, 4], -1, false),
            call(&[2, 3, 4], 1, true),
            call(&[2, 3, 2, 2], -2, false),
            call(&[2, 1, 2, 3, 2], 3, true),
            call(&[2, 0, 4], 1, false),
        ]
    },
)
.forms(Forms::Out)
.errors(|| vec![error([plain(&[3]), SampleArg::Int(1), SampleArg::Bool(false)], "out of range")])
.with(OpFlags::AUTOCAST_F32)
.with(OpFlags::COMPLEX);
