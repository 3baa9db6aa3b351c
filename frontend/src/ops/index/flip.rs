//! `flip`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::rules::reduced_dims;
use crate::ops::sample::{SampleArg, error, plain, sample};
use crate::tensor::IntoShape;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// Reverses the elements along `dims`, as a copy: strides are never negative.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1, 2, 3])?.flip(0)?.to_vec::<i32>()?, [3, 2, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or given twice.
    pub fn flip(&self, dims: impl IntoShape) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(&dims.into_ints())])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    reduced_dims(args, 1, t.ndim())?;
    Ok(Plan::one(t.dtype(), Dims::from_slice(t.sizes()), t.dtype(), Strides::Like(0)))
}

/// `flip`
pub static DEF: OpDef = OpDef::new(
    "flip(Tensor self, int[] dims) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.flip(b.ints(1)?))),
    || {
        let call = |sizes: &[usize], dims: &[i64]| sample([plain(sizes), SampleArg::Ints(dims.to_vec())]);
        vec![
            call(&[], &[]),
            call(&[5], &[0]),
            call(&[2, 3], &[-1]),
            call(&[2, 3, 4], &[0, 2]),
            call(&[2, 0], &[0]),
            call(&[2, 3], &[]),
            call(&[2, 3, 2, 2], &[1, 2, 3]),
            call(&[2, 1, 2, 3, 2], &[0, 3]),
        ]
    },
)
.forms(Forms::Out)
.errors(|| {
    vec![
        error([plain(&[3]), SampleArg::Ints(vec![1])], "out of range"),
        error([plain(&[3, 3]), SampleArg::Ints(vec![0, -2])], "different dimensions"),
    ]
})
.with(OpFlags::EXACT)
.with(OpFlags::COMPLEX);
