//! `softmax`

use super::softmax_backward;
use crate::autograd::is_grad_enabled;
use crate::error::Result;
use crate::ops::composite::{cast, one, tensor, widened};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::rules;
use crate::ops::sample::{SampleArg, error, plain, sample};
use crate::ops::sparse::lines::at_entries;
use crate::tensor::Int;
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Softmax: `exp(x) / sum(exp(x))` along `dim`, without overflow. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([5.0f32, 5.0])?;
    /// assert_eq!(x.softmax(0)?.to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// For a sparse tensor, elements that are not stored count as minus infinity: the result has the coordinates of `self`,
    /// and the stored entries of each row along `dim` sum to 1. A stored 0 is an element like others; duplicates are added
    /// first.
    ///
    /// # Errors
    /// A dimension out of range.
    #[doc(alias = "softmax_last_dim")]
    pub fn softmax(&self, dim: impl Int) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64())])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    args.dim(1, t.ndim())?;
    Plan::elementwise(args, rules::FIRST, rules::unary_float(args)?)
}

/// Argument 0 minus its maximum along the dimension in argument 1, as floats with f16 and bf16 widened to f32, and the dtype of
/// the result.
pub(super) fn shifted(args: &Args<'_>) -> Result<(Tensor, DType)> {
    let x = tensor(args, 0)?;
    let dtype = rules::float_of(x.dtype());
    let x = widened(&cast(x, dtype)?)?;
    // An empty tensor has no maximum.
    if x.elem_count() == 0 {
        return Ok((x, dtype));
    }
    let greatest = x.amax_keepdim([args.int(1)?])?;
    Ok((x.sub(&greatest)?, dtype))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, dtype) = shifted(args)?;
    let parts = x.exp()?;
    cast(parts.div(&parts.sum_keepdim([args.int(1)?])?)?, dtype)
}

/// `softmax`
pub static DEF: OpDef = OpDef::new(
    "softmax(Tensor self, int dim) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula {
        saves: 0,
        saves_outputs: 0b1,
        formula: |b, g| {
            g.set(0, || {
                let (made, dim) = (b.output(0)?, b.int(1)?);
                let strided = made.as_ref().is_strided();
                if strided && !is_grad_enabled() {
                    return softmax_backward::DEF.run(&[b.grad(0)?.into(), (&made).into(), b.arg(1)]);
                }
                let (y, grad) = (widened(&made)?, widened(b.grad(0)?)?);
                if strided {
                    return cast(softmax_backward::by_tensor_ops(&grad, &y, dim)?, made.dtype());
                }
                let product = grad.mul(&y)?;
                let sums = at_entries(&y.detach(), &product.sum_keepdim(dim)?, b.arg(1), true)?;
                let shares = y.with_stored(&y.stored()?.mul(&sums)?)?;
                cast(product.sub(&shares)?, made.dtype())
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
