//! `any`

use crate::DType;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules::{reduced_dims, reduced_sizes};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// Whether any element is not 0; false where there is none.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[0i32, 3])?.any()?.item::<bool>()?, true);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn any(&self) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::None, Arg::Bool(false)])
    }

    /// Whether any element is not 0 over `dims`, which stay as size 1 if `keepdim`. No dims means all.
    ///
    /// # Errors
    /// A dimension out of range or given twice.
    pub fn any_dims(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(dims), Arg::Bool(keepdim)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    let mask = reduced_dims(args, 1, t.ndim())?;
    Ok(Plan::one(t.dtype(), reduced_sizes(t.sizes(), mask, args.bool(2)?), DType::BOOL, Strides::Contiguous))
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], dims: Option<&[i64]>, keep| {
        let dims = dims.map_or(SampleArg::None, |d| SampleArg::Ints(d.to_vec()));
        sample([plain(sizes), dims, SampleArg::Bool(keep)])
    };
    vec![
        call(&[], None, false),
        call(&[7], None, false),
        call(&[3, 4], None, true),
        call(&[3, 4], Some(&[0]), false),
        call(&[3, 4], Some(&[-1]), true),
        call(&[2, 3, 4], Some(&[0, 2]), false),
        call(&[2, 3, 2, 2], Some(&[1, -1]), true),
        call(&[2, 0], Some(&[1]), false),
    ]
}

/// `any`
pub static DEF: OpDef = OpDef {
    schema: "any(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    rule: Rule::Dense(rule),
    decomposition: None,
    derivative: Derivative::NotDifferentiable,
    forms: Forms::Out,
    dtypes: Dtypes::ALL,
    samples,
    errors: || {
        vec![
            error([plain(&[3]), SampleArg::Ints(vec![1]), SampleArg::Bool(false)], "out of range"),
            error(
                [plain(&[3, 3]), SampleArg::Ints(vec![0, -2]), SampleArg::Bool(false)],
                "different dimensions",
            ),
        ]
    },
    entry: Entry::new(),
};
