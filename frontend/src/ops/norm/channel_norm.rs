//! `channel_norm`

use super::channel_norm_backward;
use super::channels::{check_channels, normalised, spread};
use crate::Tensor;
use crate::autograd::{Backward, Grads, is_grad_enabled};
use crate::error::Result;
use crate::ops::composite::{
    cast, centred, float_tensor, gradient_in_format_of, optional, tensor, wide, widened,
};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::wrong_shape;
use crate::ops::sample::{Sample, SampleArg, error, plain, sample, uniform};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};
use keyway_dispatcher::tensor::TensorRef;

/// The dimensions over which mean and variance are computed.
pub(super) fn dims(ndim: usize, per_sample: bool) -> Vec<i64> {
    (0..ndim as i64).filter(|&d| d > 1 || d == 0 && !per_sample).collect()
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let x: &TensorRef = float_tensor(args, 0)?;
    let &[batch, channels, ref rest @ ..] = x.sizes() else {
        let expected = "of 2 or more dimensions, [batch, channels, ..]".to_string();
        return Err(wrong_shape(args, 0, expected, x.sizes()));
    };
    check_channels(args, 1, channels)?;
    check_channels(args, 2, channels)?;
    let (per_sample, _) = (args.bool(3)?, args.float(4)?);
    let mut kept = Dims::from_slice(&[if per_sample { batch } else { 1 }, channels]);
    kept.extend(rest.iter().map(|_| 1));
    let wide = wide(x.dtype());
    let mut plan = Plan::one(x.dtype(), Dims::from_slice(x.sizes()), x.dtype(), Strides::Like(0))
        .and(kept.clone(), wide, Strides::Contiguous)
        .and(kept, wide, Strides::Contiguous);
    plan.cast = 0b111;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<[Tensor; 3]> {
    let own = tensor(args, 0)?;
    let per_sample = args.bool(3)?;
    // A dimension is added to rows of one element, since a mean over an empty list of dimensions reduces all.
    let single = per_sample && own.rank() == 2;
    let x = widened(&own)?;
    let x = if single { x.unsqueeze(-1)? } else { x };
    let dims = dims(x.rank(), per_sample);
    let in_x = |i: usize| optional(args, i)?.map(|t| spread(&cast(t, x.dtype())?, x.rank())).transpose();
    let (weight, bias) = (in_x(1)?, in_x(2)?);
    let (mean, var) = (x.mean_keepdim(&dims)?, x.var_with(&dims, 0.0, true)?);
    let affine = [weight.as_ref(), bias.as_ref()];
    let made = normalised(&x, [&mean, &var], affine, args.float(4)?, Some(&dims))?;
    let results = [cast(made, own.dtype())?, mean, var];
    if !single {
        return Ok(results);
    }
    let [made, mean, var] = results.map(|t| t.squeeze(-1));
    Ok([made?, mean?, var?])
}

/// Calls the fused backward op unless the gradients are differentiated again or mean and variance have gradients; otherwise
/// runs tensor ops.
fn formula(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    let (grad, own, weight) = (b.grad(0)?, b.input(0)?, b.optional_input(1)?);
    if !is_grad_enabled() && !b.has_grad(1) && !b.has_grad(2) {
        let (mean, var) = (b.output(1)?, b.output(2)?);
        let (grad, weight) = (gradient_in_format_of(&own, grad)?, Arg::optional(weight.as_ref()));
        let args = [(&grad).into(), (&own).into(), (&mean).into(), (&var).into(), weight, b.arg(3), b.arg(4)];
        for (i, made) in channel_norm_backward::DEF.run_all(&args)?.into_iter().enumerate() {
            g.set(i, || Ok(made))?;
        }
        return Ok(());
    }
    let per_sample = b.bool(3)?;
    let single = per_sample && own.rank() == 2;
    let in_x = |t: &Tensor| {
        let t = widened(t)?;
        if single { t.unsqueeze(-1) } else { Ok(t) }
    };
    let (x, grad) = (in_x(&own)?, in_x(grad)?);
    let dims = dims(x.rank(), per_sample);
    let (mean, var) = (x.mean_keepdim(&dims)?, x.var_with(&dims, 0.0, true)?);
    let [of_x, of_weight, of_bias] =
        gradients(&x, &grad, [&mean, &var], weight.as_ref(), &dims, b.float(4)?)?;
    // The gradient through the mean and variance outputs.
    let count = x.elem_count() as f64 / mean.elem_count().max(1) as f64;
    let (of_mean, of_var) = (in_x(b.grad(1)?)?, in_x(b.grad(2)?)?);
    let through = of_mean.add(&of_var.mul(2.0)?.mul(&x.sub(&mean)?)?)?.div(count)?;
    let of_x = of_x.add(&through)?;
    g.set(0, || if single { of_x.squeeze(-1) } else { Ok(of_x) })?;
    g.set(1, || Ok(of_weight))?;
    g.set(2, || Ok(of_bias))
}

/// The gradients of input, weight and bias, all in one dtype; `dims` are the dimensions over which mean and variance were
/// computed. With `h = (x - mean) * rstd`, `rstd = 1 / sqrt(var + eps)` and `g = grad * weight`, the input's is
/// `rstd * (c - h * mean(c * h))` with `c = g - mean(g)` (Ioffe and Szegedy, "Batch Normalization", 2015, by the chain rule).
pub(super) fn gradients(
    x: &Tensor,
    grad: &Tensor,
    [mean, var]: [&Tensor; 2],
    weight: Option<&Tensor>,
    dims: &[i64],
    eps: f64,
) -> Result<[Tensor; 3]> {
    let rstd = var.add(eps)?.rsqrt()?;
    let hat = x.sub(mean)?.mul(&rstd)?;
    // Centred first: `hat` has mean 0, so a large mean of the gradient would only cost precision in the product.
    let inner = centred(grad, dims)?;
    let inner = match weight {
        Some(weight) => inner.mul(&spread(&cast(weight.clone(), x.dtype())?, x.rank())?)?,
        None => inner,
    };
    // The product depends only on the difference of the input from its own mean, regardless of the given mean.
    let apart = centred(x, dims)?.mul(&rstd)?;
    let along = hat.mul(&inner.mul(&apart)?.mean_keepdim(dims)?)?;
    let of_x = inner.sub(&along)?.mul(&rstd)?;
    let others: Vec<i64> = (0..x.rank() as i64).filter(|&d| d != 1).collect();
    Ok([of_x, grad.mul(&hat)?.sum(&others)?, grad.sum(&others)?])
}

fn samples() -> Vec<Sample> {
    let shapes: [&[usize]; 6] =
        [&[4, 3], &[2, 3, 2], &[2, 2, 2, 3], &[2, 1, 2, 1, 2], &[2, 2, 5, 7], &[2, 9, 3, 5]];
    let call = |sizes: &[usize], per_sample: bool, affine: bool| {
        let channels = &[sizes[1]][..];
        let [weight, bias] = match affine {
            true => [uniform(channels, 0.5, 1.5), plain(channels)],
            false => [SampleArg::None, SampleArg::None],
        };
        sample([plain(sizes), weight, bias, SampleArg::Bool(per_sample), SampleArg::Float(0.1)])
    };
    let whole = shapes.iter().map(|s| call(s, false, true));
    whole.chain(shapes[1..].iter().map(|s| call(s, true, s.len() > 3))).collect()
}

/// `channel_norm`: `batch_norm`, or `instance_norm` with `per_sample`, of an input with its own statistics; also returns the
/// mean and (biased) variance of each channel or row, with the reduced dimensions of size 1, in f32 for f16 and bf16.
pub static DEF: OpDef = OpDef::new(
    "channel_norm(Tensor self, Tensor? weight, Tensor? bias, bool per_sample, float eps) -> (Tensor, \
     Tensor, Tensor)",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0b011, saves_outputs: 0b110, formula },
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |sizes: &[usize], weight| {
        [plain(sizes), weight, SampleArg::None, SampleArg::Bool(false), SampleArg::Float(0.1)]
    };
    vec![
        error(call(&[3], SampleArg::None), "2 or more dimensions"),
        error(call(&[2, 3], plain(&[2])), "of shape [3]"),
    ]
})
.decomposed(|args| Ok(compose(args)?.into_iter().map(Tensor::into_ref).collect()))
.with(OpFlags::DERIVED_IN_F32);
