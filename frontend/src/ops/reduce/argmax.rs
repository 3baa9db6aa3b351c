//! `argmax`

use crate::DType;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules::{not_empty, reduced_dim, reduced_sizes, require};
use crate::ops::sample::{SampleArg, error, plain, sample};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The place of the largest element along `dim`, which stays as size 1 if `keepdim`; without a dim, in the
    /// flattened tensor. The first of equals; NaN wins.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0, 2.0])?;
    /// assert_eq!(x.argmax(None, false)?.item::<i64>()?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or of size 0; bool.
    pub fn argmax(&self, dim: Option<i64>, keepdim: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::optional(dim), Arg::Bool(keepdim)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    require(args, 0, t.dtype(), t.dtype() != DType::BOOL, "a number; cast bool first")?;
    let mask = reduced_dim(args, 1, t.ndim())?;
    not_empty(args, t.sizes(), mask)?;
    Ok(Plan::one(t.dtype(), reduced_sizes(t.sizes(), mask, args.bool(2)?), DType::I64, Strides::Contiguous))
}

/// `argmax`
pub static DEF: OpDef = OpDef {
    schema: "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    rule: Rule::Structured(rule),
    decomposition: None,
    derivative: Derivative::NotDifferentiable,
    forms: Forms::Out,
    dtypes: Dtypes::NUMERIC,
    samples: || {
        let call = |sizes: &[usize], dim: SampleArg, keep| sample([plain(sizes), dim, SampleArg::Bool(keep)]);
        vec![
            call(&[], SampleArg::None, false),
            call(&[3, 4], SampleArg::None, false),
            call(&[3, 4], SampleArg::Int(0), false),
            call(&[3, 700], SampleArg::Int(-1), true),
            call(&[7], SampleArg::Int(0), false),
            call(&[2, 3, 4], SampleArg::Int(1), false),
            call(&[2, 3, 2, 2], SampleArg::Int(-2), true),
            call(&[2, 1, 2, 3, 2], SampleArg::Int(3), false),
            call(&[0, 3], SampleArg::Int(1), false),
        ]
    },
    errors: || {
        vec![
            error([plain(&[3]), SampleArg::Int(1), SampleArg::Bool(false)], "out of range"),
            error([plain(&[3, 0]), SampleArg::Int(1), SampleArg::Bool(false)], "not empty"),
        ]
    },
    entry: Entry::new(),
};
