//! `log_softmax`

use super::log_softmax_backward;
use super::softmax::shifted;
use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::error::Result;
use crate::ops::composite::{cast, one, widened};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::rules;
use crate::ops::sample::{SampleArg, error, plain, sample};
use crate::ops::sparse::lines::at_entries;
use crate::tensor::Int;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// The logarithm of [`Tensor::softmax`], without overflow. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([5.0f32, 5.0])?;
    /// assert_eq!(x.log_softmax(0)?.exp()?.sum_all()?.item::<f32>()?, 1.0);
    /// # Ok(()) }
    /// ```
    ///
    /// For a sparse tensor, elements that are not stored count as minus infinity, as in [`Tensor::softmax`]; the result has the
    /// coordinates of `self`, and elements that it does not store represent minus infinity, not 0.
    ///
    /// # Errors
    /// A dimension out of range.
    pub fn log_softmax(&self, dim: impl Int) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64())])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    args.dim(1, t.ndim())?;
    Plan::elementwise(args, rules::FIRST, rules::unary_float(args)?)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, dtype) = shifted(args)?;
    let total = x.exp()?.sum_keepdim([args.int(1)?])?;
    cast(x.sub(&total.log()?)?, dtype)
}

/// The gradient of a sparse argument, at its stored entries.
fn at_stored(y: &Tensor, grad: &Tensor, dim: i64) -> Result<Tensor> {
    let (grad, pattern) = (grad.sparse_mask(y)?, y.detach());
    let sums = at_entries(&pattern, &grad.sum_keepdim(dim)?, Arg::Int(dim), true)?;
    // The softmax of stored entries; that of others is 0.
    let shares = y.stored()?.exp()?.mul(&sums)?;
    grad.with_stored(&grad.stored()?.sub(&shares)?)
}

/// `log_softmax`
pub static DEF: OpDef = OpDef::new(
    "log_softmax(Tensor self, int dim) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula {
        saves: 0,
        saves_outputs: 0b1,
        formula: |b, g| {
            g.set(0, || {
                let (made, dim) = (b.output(0)?, b.int(1)?);
                let strided = made.as_ref().is_strided();
                if strided && !is_grad_enabled() {
                    return log_softmax_backward::DEF.run(&[b.grad(0)?.into(), (&made).into(), b.arg(1)]);
                }
                let (y, grad) = (widened(&made)?, widened(b.grad(0)?)?);
                if !strided {
                    return at_stored(&y, &grad, dim);
                }
                cast(log_softmax_backward::by_tensor_ops(&grad, &y, dim)?, made.dtype())
            })
        },
    },
    || {
        let call = |sizes: &[usize], dim: i64| sample([plain(sizes), SampleArg::Int(dim)]);
        vec![
            call(&[], 0),
            call(&[5], 0),
            call(&[3, 4], 0),
            call(&[3, 4], -1),
            call(&[2, 3, 4], 1),
            call(&[2, 3, 2, 2], -2),
            call(&[2, 1, 2, 3, 2], 3),
            call(&[2, 0], 1),
        ]
    },
)
.forms(Forms::Out)
.errors(|| vec![error([plain(&[3]), SampleArg::Int(1)], "out of range")])
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST_F32);
