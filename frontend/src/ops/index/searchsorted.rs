//! `searchsorted`
//!
//! Arguments:
//! - `sorted_sequence`: ascending values.
//! - `values`: the values that are searched for.
//! - `right`: whether to return the index after equal values, rather than before them.

use crate::DType;
use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::index::geometry::wrong_shape;
use crate::ops::rules::{FIRST_TWO, require};
use crate::ops::sample::{Fill, SampleArg, error, plain, sample, tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// Binary search: the first insertion index for each of `values` that preserves the order of this ascending sequence.
    /// The last dimension is the sequence; the others match those of the values, unless the sequence is one-dimensional and
    /// applies to all.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 3, 5])?;
    /// assert_eq!(a.searchsorted(&Tensor::new([3, 9])?)?.to_vec::<i64>()?, [1, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Dimensions that do not match.
    pub fn searchsorted<'a>(&'a self, values: impl Into<Arg<'a>>) -> Result<Tensor> {
        self.searchsorted_with(values, false)
    }

    /// [`Tensor::searchsorted`]; with `right` the last such index.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 3, 3, 5])?;
    /// assert_eq!(a.searchsorted_with(3, false)?.item::<i64>()?, 1);
    /// assert_eq!(a.searchsorted_with(3, true)?.item::<i64>()?, 3);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn searchsorted_with<'a>(&'a self, values: impl Into<Arg<'a>>, right: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), values.into(), Arg::Bool(right)])
    }

    /// The index of the interval between the sorted `boundaries` that contains each element: [`Tensor::searchsorted`] with the
    /// arguments exchanged.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let boundaries = Tensor::new([0.0f32, 10.0])?;
    /// assert_eq!(Tensor::new([-1.0f32, 10.0, 11.0])?.bucketize(&boundaries)?.to_vec::<i64>()?, [0, 1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::searchsorted`].
    pub fn bucketize(&self, boundaries: &Tensor) -> Result<Tensor> {
        called("bucketize", &[], || boundaries.searchsorted(self))
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let sequence = args.tensor(0)?;
    let sizes = match args.get(1) {
        Arg::Tensor(values) => Dims::from_slice(values.sizes()),
        _ => Dims::new(),
    };
    let (own, given) = (sequence.sizes(), sizes.as_slice());
    let lead = own.len().saturating_sub(1);
    let matches = own.len() == given.len() && own[..lead] == given[..lead];
    if own.is_empty() || (own.len() > 1 && !matches) {
        let expected =
            format!("of one dimension, or of the dimensions of `values`, {given:?}, but for the last");
        return Err(wrong_shape(args, 0, expected, own));
    }
    let dtype = args.promote(FIRST_TWO)?;
    require(args, 0, sequence.dtype(), sequence.dtype() != DType::BOOL, "a number dtype")?;
    let mut plan = Plan::one(dtype, sizes, DType::I64, Strides::Contiguous);
    plan.cast = FIRST_TWO;
    plan.contiguous = FIRST_TWO;
    Ok(plan)
}

/// `searchsorted`
pub static DEF: OpDef = OpDef::new(
    "searchsorted(Tensor sorted_sequence, Tensor values, bool right=False) -> Tensor",
    Rule::Structured(rule),
    Derivative::NotDifferentiable,
    || {
        let sequence = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![-2.0, -1.0, 0.0, 0.0, 1.0]));
        // Values that equal one bound, two, or none.
        let among = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![0.0, 1.0, -2.0, 0.5, -1.0]));
        let call = |sizes: &[usize], values, right| sample([sequence(sizes), values, SampleArg::Bool(right)]);
        vec![
            call(&[5], plain(&[4]), false),
            call(&[5], plain(&[2, 3]), true),
            call(&[5], plain(&[]), true),
            call(&[2, 5], plain(&[2, 3]), false),
            call(&[0], plain(&[3]), false),
            call(&[5], SampleArg::Int(0), true),
            call(&[0], plain(&[3]), true),
            call(&[5], among(&[2, 3]), false),
            call(&[5], among(&[2, 3]), true),
            call(&[2, 5], among(&[2, 3]), true),
        ]
    },
)
.forms(Forms::Out)
.dtypes(Dtypes::NUMERIC)
.errors(|| vec![error([plain(&[2, 5]), plain(&[3, 3]), SampleArg::Bool(false)], "but for the last")]);
