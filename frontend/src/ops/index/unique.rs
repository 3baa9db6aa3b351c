//! `unique`
//!
//! Arguments:
//! - `return_inverse`: whether to return the index of each element in the result.
//! - `return_counts`: whether to return the count of each value.

pub use crate::tensor::Unique;

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{Fill, SampleArg, sample, tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The distinct elements in ascending order. Each NaN is distinct. The result has no gradient, since a value may come from
    /// several equal elements; `sort` has one.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([3, 1, 3])?.unique()?.to_vec::<i32>()?, [1, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    #[doc(alias = "unique_values")]
    pub fn unique(&self) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Bool(false), Arg::Bool(false)])
    }

    /// [`Tensor::unique`] with the index of each element in the values, and counts.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let found = Tensor::new([5, 3, 5])?.unique_all()?;
    /// assert_eq!(found.inverse.to_vec::<i64>()?, [1, 0, 1]);
    /// assert_eq!(found.counts.to_vec::<i64>()?, [1, 2]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    #[doc(alias = "unique_inverse")]
    #[doc(alias = "unique_counts")]
    pub fn unique_all(&self) -> Result<Unique> {
        let mut made =
            DEF.call(&[self.into(), Arg::Bool(true), Arg::Bool(true)], keyway_dispatcher::op::Out::New)?;
        let mut next = || {
            let t = if made.is_empty() { None } else { Some(Tensor::from_ref(made.remove(0))) };
            t.ok_or_else(|| keyway_dispatcher::Error::UnknownOp { name: "unique of three results".into() })
        };
        Ok(Unique { values: next()?, inverse: next()?, counts: next()? })
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    let mut plan = Plan::one(t.dtype(), Dims::from_slice(t.sizes()), t.dtype(), Strides::Contiguous);
    plan.contiguous = 0b1;
    Ok(plan)
}

/// `unique`
pub static DEF: OpDef = OpDef::new(
    "unique(Tensor self, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, \
     Tensor)",
    Rule::Allocates(rule),
    // A value of several equal elements is not a function of them: changing one produces a new value.
    Derivative::NotDifferentiable,
    || {
        let yes = SampleArg::Bool(true);
        let shapes: [&[usize]; 7] = [&[], &[7], &[3, 4], &[2, 3, 2], &[2, 3, 2, 2], &[2, 1, 2, 3, 2], &[0]];
        let fill = Fill::Values(vec![2.0, 1.0, 2.0, 0.0, 3.0]);
        shapes.iter().map(|s| sample([tensor(s, fill.clone()), yes.clone(), yes.clone()])).collect()
    },
)
.with(OpFlags::EXACT);
