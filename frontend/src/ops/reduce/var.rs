//! `var`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules::require;
use crate::ops::rules::{reduced_dims, reduced_sizes};
use crate::ops::sample::{Fill, Sample, SampleArg, error, plain, sample, tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The variance of all elements, divided by their number less 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1.0f32, 3.0])?.var()?.item::<f32>()?, 2.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn var(&self) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::None, Arg::Float(1.0), Arg::Bool(false)])
    }

    /// The variances over `dims`, which stay as size 1 if `keepdim`, divided by the number of elements less
    /// `correction`. No dims means all.
    ///
    /// # Errors
    /// A dimension out of range or given twice.
    pub fn var_dims(&self, dims: &[i64], correction: f64, keepdim: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(dims), Arg::Float(correction), Arg::Bool(keepdim)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    require(args, 0, t.dtype(), t.dtype().is_float(), "a float dtype; cast integers first")?;
    let mask = reduced_dims(args, 1, t.ndim())?;
    Ok(Plan::one(t.dtype(), reduced_sizes(t.sizes(), mask, args.bool(3)?), t.dtype(), Strides::Contiguous))
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], dims: Option<&[i64]>, keep| {
        let dims = dims.map_or(SampleArg::None, |d| SampleArg::Ints(d.to_vec()));
        sample([tensor(sizes, Fill::Distinct(-2.0, 2.0)), dims, SampleArg::Float(0.5), SampleArg::Bool(keep)])
    };
    vec![
        call(&[7], None, false),
        call(&[3, 4], None, true),
        call(&[3, 4], Some(&[0]), false),
        call(&[3, 4], Some(&[-1]), true),
        call(&[2, 3, 4], Some(&[0, 2]), false),
        call(&[2, 3, 2, 2], Some(&[1, -1]), true),
    ]
}

/// `var`
pub static DEF: OpDef = OpDef {
    schema: "var(Tensor self, int[]? dim=None, Scalar correction=1, bool keepdim=False) -> Tensor",
    rule: Rule::Dense(rule),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || {
                let x = b.input(0)?;
                let dims = if let Arg::Ints(dims) = b.arg(1) { dims } else { &[] };
                let grad = b.unreduce(b.grad(0)?, 0, b.arg(1), b.bool(3)?)?;
                let count = b.sizes(0).iter().product::<usize>() as f64 / b.grad(0)?.numel() as f64;
                let divisor = (count - b.float(2)?).max(0.0);
                let centred = x.sub(&x.mean_dims(dims, true)?)?;
                grad.mul(&centred)?.mul(2.0 / divisor)
            })
        },
    },
    forms: Forms::Out,
    dtypes: Dtypes::FLOAT,
    samples,
    errors: || {
        vec![
            error(
                [plain(&[3]), SampleArg::Ints(vec![1]), SampleArg::Float(0.5), SampleArg::Bool(false)],
                "out of range",
            ),
            error(
                [plain(&[3, 3]), SampleArg::Ints(vec![0, -2]), SampleArg::Float(0.5), SampleArg::Bool(false)],
                "different dimensions",
            ),
        ]
    },
    entry: Entry::new(),
};
