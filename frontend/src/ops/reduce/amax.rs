//! `amax`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules::not_empty;
use crate::ops::rules::{reduced_dims, reduced_sizes};
use crate::ops::sample::{Fill, Sample, SampleArg, error, plain, sample, tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The largest element; NaN if there is one. Ties share the gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1i32, 3])?.amax()?.item::<i32>()?, 3);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor without elements.
    pub fn amax(&self) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::None, Arg::Bool(false)])
    }

    /// The largest elements over `dims`, which stay as size 1 if `keepdim`. No dims means all.
    ///
    /// # Errors
    /// A dimension out of range or given twice, or one of size 0.
    pub fn amax_dims(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(dims), Arg::Bool(keepdim)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    let mask = reduced_dims(args, 1, t.ndim())?;
    not_empty(args, t.sizes(), mask)?;
    Ok(Plan::one(t.dtype(), reduced_sizes(t.sizes(), mask, args.bool(2)?), t.dtype(), Strides::Contiguous))
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], dims: Option<&[i64]>, keep| {
        let dims = dims.map_or(SampleArg::None, |d| SampleArg::Ints(d.to_vec()));
        sample([tensor(sizes, Fill::Distinct(-2.0, 2.0)), dims, SampleArg::Bool(keep)])
    };
    vec![
        call(&[], None, false),
        call(&[7], None, false),
        call(&[3, 4], None, true),
        call(&[3, 4], Some(&[0]), false),
        call(&[3, 4], Some(&[-1]), true),
        call(&[2, 3, 4], Some(&[0, 2]), false),
        call(&[2, 3, 2, 2], Some(&[1, -1]), true),
    ]
}

/// `amax`
pub static DEF: OpDef = OpDef {
    schema: "amax(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    rule: Rule::Dense(rule),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0b1,
        formula: |b, g| {
            g.set(0, || {
                let (x, out) = (b.input(0)?, b.unreduce(&b.output(0)?, 0, b.arg(1), b.bool(2)?)?);
                let grad = b.unreduce(b.grad(0)?, 0, b.arg(1), b.bool(2)?)?;
                let ties = x.eq(&out)?.to_dtype(x.dtype())?;
                let dims = if let Arg::Ints(dims) = b.arg(1) { dims } else { &[] };
                grad.div(&ties.sum_dims(dims, true)?)?.mul(&ties)
            })
        },
    },
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
