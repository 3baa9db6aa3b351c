//! `norm`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules::{keeping, reduced_dims, reduced_sizes, require};
use crate::ops::sample::{Fill, Sample, SampleArg, error, plain, sample, tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// The `p`-norm over `dims`, which stay as size 1 if `keepdim`: the `p`-th root of the sum of the absolute
    /// values to the power of `p`; their largest for infinity, their smallest for minus infinity, how many
    /// are not 0 for 0. No dims means all. Where the norm is 0 so is its gradient, whatever `p` is.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_slice(&[3.0f32, -4.0])?;
    /// assert_eq!(x.norm(2.0, &[], false)?.item::<f32>()?, 5.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range or given twice.
    pub fn norm(&self, p: f64, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Float(p), Arg::Ints(dims), Arg::Bool(keepdim)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    require(args, 0, t.dtype(), t.dtype().is_float(), "a float dtype; cast integers first")?;
    let mask = reduced_dims(args, 2, t.ndim())?;
    Ok(keeping(t, t.dtype(), reduced_sizes(t.sizes(), mask, args.bool(3)?), t.dtype()))
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], dims: Option<&[i64]>, keep| {
        let dims = dims.map_or(SampleArg::None, |d| SampleArg::Ints(d.to_vec()));
        sample([tensor(sizes, Fill::Distinct(0.3, 2.0)), SampleArg::Float(2.0), dims, SampleArg::Bool(keep)])
    };
    let with = |p: f64| {
        let x = tensor(&[3, 4], Fill::Distinct(0.3, 2.0));
        sample([x, SampleArg::Float(p), SampleArg::Ints(vec![1]), SampleArg::Bool(false)])
    };
    let zeros = |p: f64| {
        let x = tensor(&[2, 3], Fill::Values(vec![0.0, 0.0, 0.0, 0.5, 0.0, -1.5]));
        let args = [x, SampleArg::Float(p), SampleArg::Ints(vec![1]), SampleArg::Bool(false)];
        Sample { smooth: false, ..sample(args) }
    };
    vec![
        call(&[], None, false),
        call(&[7], None, false),
        call(&[3, 4], None, true),
        call(&[3, 4], Some(&[0]), false),
        call(&[3, 4], Some(&[-1]), true),
        call(&[2, 3, 4], Some(&[0, 2]), false),
        call(&[2, 3, 2, 2], Some(&[1, -1]), true),
        call(&[2, 1, 2, 3, 2], Some(&[0, 3]), false),
        call(&[0, 3], Some(&[1]), false),
        with(1.0),
        with(3.0),
        with(f64::INFINITY),
        with(f64::NEG_INFINITY),
        with(0.0),
        zeros(1.0),
        zeros(2.0),
        zeros(3.0),
        zeros(0.5),
        zeros(f64::INFINITY),
    ]
}

/// `norm`
pub static DEF: OpDef = OpDef {
    schema: "norm(Tensor self, Scalar p=2, int[]? dim=None, bool keepdim=False) -> Tensor",
    rule: Rule::Structured(rule),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0b1,
        formula: |b, g| {
            g.set(0, || {
                let (x, p) = (b.input(0)?, b.float(1)?);
                let out = b.unreduce(&b.output(0)?, 0, b.arg(2), b.bool(3)?)?;
                let grad = b.unreduce(b.grad(0)?, 0, b.arg(2), b.bool(3)?)?;
                // Where the norm is 0 the derivative is taken to be 0, and so is that of the derivative: nothing is
                // divided by 0.
                let over = |t: &Tensor, by: &Tensor| {
                    let none = by.eq(0.0)?;
                    none.select_where(0.0, &t.div(&none.select_where(1.0, by)?)?)
                };
                if p == 0.0 {
                    return x.zeros_like();
                }
                if p == 1.0 {
                    return grad.mul(&x.sign()?);
                }
                if p == 2.0 {
                    return over(&grad, &out)?.mul(&x);
                }
                if p.is_infinite() {
                    let ties = x.abs()?.eq(&out)?.to_dtype(x.dtype())?;
                    let dims = if let Arg::Ints(dims) = b.arg(2) { dims } else { &[] };
                    return grad.div(&ties.sum_dims(dims, true)?)?.mul(&ties)?.mul(&x.sign()?);
                }
                // (|x| / norm)^(p - 1) as an exponential; 0 where x is 0.
                let share = over(&x.abs()?, &out)?;
                let power = share.eq(0.0)?.select_where(1.0, &share)?.log()?.mul(p - 1.0)?.exp()?;
                share.eq(0.0)?.select_where(0.0, &power)?.mul(&x.sign()?)?.mul(&grad)
            })
        },
    },
    forms: Forms::Out,
    dtypes: Dtypes::FLOAT,
    samples,
    errors: || {
        vec![
            error(
                [plain(&[3]), SampleArg::Float(2.0), SampleArg::Ints(vec![1]), SampleArg::Bool(false)],
                "out of range",
            ),
            error(
                [plain(&[3, 3]), SampleArg::Float(2.0), SampleArg::Ints(vec![0, -2]), SampleArg::Bool(false)],
                "different dimensions",
            ),
        ]
    },
    entry: Entry::new(),
};
