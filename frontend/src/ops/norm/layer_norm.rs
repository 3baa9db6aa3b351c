//! `layer_norm`
//!
//! Arguments:
//! - `weight`: the factor of each element of the normalized dimensions; None for 1.
//! - `bias`: added to each element of the normalized dimensions; None for 0.

use super::layer_norm_backward;
use crate::Tensor;
use crate::autograd::{Backward, Grads, is_grad_enabled};
use crate::error::Result;
use crate::ops::composite::{
    cast, centred, float_tensor, gradient_in_format_of, in_format_of, one, optional, tensor, widened,
};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::keeping;
use crate::ops::sample::{Fill, Sample, SampleArg, error, plain, sample, tensor as filled, uniform};
use crate::tensor::IntoShape;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Error;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Layer normalization: `(x - mean) / sqrt(variance + 1e-5) * weight + bias`, with mean and (biased) variance over the last
    /// dimensions, whose sizes are `normalized_shape`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f32, 3.0])?;
    /// let y = x.layer_norm(2, None, None)?.to_vec::<f32>()?;
    /// assert!((y[0] + 1.0).abs() < 1e-5 && (y[1] - 1.0).abs() < 1e-5);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A shape that does not end with the normalized shape; weight or bias of another shape.
    pub fn layer_norm(
        &self,
        normalized_shape: impl IntoShape,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
    ) -> Result<Tensor> {
        self.layer_norm_with(normalized_shape, weight, bias, 1e-5)
    }

    /// [`Tensor::layer_norm`] with an `eps`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f32, 3.0])?;
    /// let y = x.layer_norm_with(2, None, None, 0.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn layer_norm_with(
        &self,
        normalized_shape: impl IntoShape,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        let (weight, bias) = (Arg::optional(weight), Arg::optional(bias));
        DEF.run(&[self.into(), Arg::Ints(&normalized_shape.into_ints()), weight, bias, Arg::Float(eps)])
    }
}

/// The number of leading dimensions that are not normalized.
///
/// # Errors
/// A normalized shape that is not the end of the input's shape.
pub(crate) fn leading(args: &Args<'_>, input: usize, shape: usize) -> RuleResult<usize> {
    let (sizes, given) = (args.tensor(input)?.sizes(), args.ints(shape)?);
    let lead = sizes.len().checked_sub(given.len());
    match lead
        .filter(|&lead| !given.is_empty() && sizes[lead..].iter().zip(given).all(|(&a, &b)| a as i64 == b))
    {
        Some(lead) => Ok(lead),
        None => Err(Error::Shape {
            op: args.name(),
            argument: args.op.schema.param_name(input),
            expected: format!("of a shape that ends in the normalized shape {given:?}"),
            got: sizes.into(),
        }),
    }
}

/// Refuses a weight or bias that is not of the normalized shape.
pub(super) fn check(args: &Args<'_>, i: usize, shape: &[usize]) -> RuleResult<()> {
    match args.optional_tensor(i)? {
        Some(t) if t.sizes() != shape => Err(Error::Shape {
            op: args.name(),
            argument: args.op.schema.param_name(i),
            expected: format!("of the normalized shape {shape:?}"),
            got: t.sizes().into(),
        }),
        _ => Ok(()),
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = float_tensor(args, 0)?;
    let lead = leading(args, 0, 1)?;
    check(args, 2, &t.sizes()[lead..])?;
    check(args, 3, &t.sizes()[lead..])?;
    let mut plan = keeping(t, t.dtype(), Dims::from_slice(t.sizes()), t.dtype());
    plan.cast = 0b1101;
    Ok(plan)
}

/// Calls the fused backward op unless the gradients are differentiated again; otherwise runs tensor ops.
fn formula(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    let (grad, x, weight) = (b.grad(0)?, b.input(0)?, b.optional_input(2)?);
    if is_grad_enabled() {
        let (x, grad) = (widened(&x)?, &widened(grad)?);
        let weight = weight.map(|weight| widened(&weight)).transpose()?;
        let lead = x.rank() - b.ints(1)?.len();
        let dims: Vec<i64> = (lead..x.rank()).map(|d| d as i64).collect();
        let centred = centred(&x, &dims)?;
        let rstd = centred.square()?.mean_keepdim(&dims)?.add(b.float(4)?)?.rsqrt()?;
        let hat = centred.mul(&rstd)?;
        g.set(0, || {
            let inner = if let Some(weight) = &weight { grad.mul(weight)? } else { grad.clone() };
            let along = hat.mul(&inner.mul(&hat)?.mean_keepdim(&dims)?)?;
            inner.sub(&inner.mean_keepdim(&dims)?)?.sub(&along)?.mul(&rstd)
        })?;
        // The engine reduces each gradient to the shape of its argument, which sums over the leading dimensions.
        g.set(2, || grad.mul(&hat))?;
        return g.set(3, || Ok(grad.clone()));
    }
    let (grad, weight) = (gradient_in_format_of(&x, grad)?, Arg::optional(weight.as_ref()));
    let made =
        layer_norm_backward::DEF.run_all(&[(&grad).into(), (&x).into(), b.arg(1), weight, b.arg(4)])?;
    for (i, made) in [0, 2, 3].into_iter().zip(made) {
        g.set(i, || Ok(made))?;
    }
    Ok(())
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], shape: &[usize], affine: bool| {
        let ints = SampleArg::Ints(shape.iter().map(|&s| s as i64).collect());
        let (weight, bias) = if affine {
            (uniform(shape, 0.5, 1.5), plain(shape))
        } else {
            (SampleArg::None, SampleArg::None)
        };
        sample([plain(sizes), ints, weight, bias, SampleArg::Float(0.1)])
    };
    // Equal values, and values that differ only in their last digits.
    let extreme = |values: &[f64]| {
        let (x, shape) = (filled(&[2, 40], Fill::Values(values.to_vec())), SampleArg::Ints(vec![40]));
        let args = [x, shape, SampleArg::None, SampleArg::None, SampleArg::Float(1e-5)];
        Sample { smooth: false, ..sample(args) }
    };
    vec![
        extreme(&[1234.567]),
        extreme(&[10001.0, 9998.5, 10000.25, 9999.0, 10003.0]),
        call(&[5], &[5], true),
        call(&[3, 4], &[4], true),
        call(&[3, 4], &[4], false),
        call(&[2, 3, 4], &[3, 4], true),
        call(&[2, 1, 2, 3], &[3], true),
        call(&[2, 1, 2, 1, 3], &[2, 1, 3], false),
        call(&[0, 4], &[4], true),
    ]
}

/// `x - mean` over the last dimensions, from `lead` on, and the reciprocal standard deviation; for f32 and f64.
pub(super) fn standardised(x: &Tensor, lead: usize, eps: f64) -> Result<(Tensor, Tensor)> {
    let dims: Vec<i64> = (lead..x.rank()).map(|d| d as i64).collect();
    let centred = centred(x, &dims)?;
    let rstd = centred.square()?.mean_keepdim(&dims)?.add(eps)?.rsqrt()?;
    Ok((centred, rstd))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let own = tensor(args, 0)?;
    let x = widened(&own)?;
    let (centred, rstd) = standardised(&x, x.rank() - args.ints(1)?.len(), args.float(4)?)?;
    let mut made = centred.mul(&rstd)?;
    if let Some(weight) = optional(args, 2)? {
        made = made.mul(&cast(weight, x.dtype())?)?;
    }
    if let Some(bias) = optional(args, 3)? {
        made = made.add(&cast(bias, x.dtype())?)?;
    }
    in_format_of(&own, cast(made, own.dtype())?)
}

/// `layer_norm`; its second and third results are the mean and the reciprocal standard deviation, which have no gradient.
pub static DEF: OpDef = OpDef::new(
    "layer_norm(Tensor self, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, \
     Scalar eps=1e-05) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0b101, saves_outputs: 0, formula },
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let none = SampleArg::None;
    vec![error(
        [plain(&[3, 4]), SampleArg::Ints(vec![3]), none.clone(), none, SampleArg::Float(0.1)],
        "normalized shape",
    )]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST_F32);
