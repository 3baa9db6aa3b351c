//! `frozen_norm`

use super::channel_sums;
use super::channels::{check_channels, normalised, spread};
use crate::autograd::{Backward, Grads, is_grad_enabled};
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, one, optional, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, no_result};
use crate::ops::rules::wrong_shape;
use crate::ops::sample::{ErrorSample, Sample, SampleArg, error, plain, sample, uniform};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let x = float_tensor(args, 0)?;
    let &[_, channels, ..] = x.sizes() else {
        let expected = "of 2 or more dimensions, [batch, channels, ..]".to_string();
        return Err(wrong_shape(args, 0, expected, x.sizes()));
    };
    for i in 1..=4 {
        check_channels(args, i, channels)?;
    }
    args.float(5)?;
    let mut plan = Plan::one(x.dtype(), Dims::from_slice(x.sizes()), x.dtype(), Strides::Like(0));
    // Statistics are not cast.
    plan.cast = 0b1_1001;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let own = tensor(args, 0)?;
    let x = widened(&own)?;
    let in_x = |t: Tensor| spread(&cast(t, x.dtype())?, x.rank());
    let [mean, var] = [1, 2].map(|i| in_x(tensor(args, i)?));
    let [weight, bias] = [3, 4].map(|i| optional(args, i)?.map(in_x).transpose());
    let (weight, bias) = (weight?, bias?);
    let affine = [weight.as_ref(), bias.as_ref()];
    cast(normalised(&x, [&mean?, &var?], affine, args.float(5)?, None)?, own.dtype())
}

/// The gradient of the input is a product per channel, computed by the op itself with a mean of 0 for f16 and bf16, so that it
/// is rounded once. Those of weight and bias are two sums per channel.
fn formula(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    let (grad, own, mean, var) = (b.grad(0)?, b.input(0)?, b.input(1)?, b.input(2)?);
    let (weight, eps) = (b.optional_input(3)?, b.float(5)?);
    let is_narrow = matches!(own.dtype(), DType::F16 | DType::BF16);
    if !is_grad_enabled() && !g.needs(1) && !g.needs(2) {
        let wide = if is_narrow { DType::F32 } else { own.dtype() };
        let rstd = cast(var.clone(), wide)?.add(eps)?.rsqrt()?;
        g.set(0, || match &weight {
            _ if is_narrow => {
                let (none, scale) = (mean.zeros_like()?, Arg::optional(weight.as_ref()));
                DEF.run(&[grad.into(), (&none).into(), (&var).into(), scale, Arg::None, Arg::Float(eps)])
            }
            Some(weight) => grad.mul(&spread(&rstd.mul(&cast(weight.clone(), wide)?)?, own.rank())?),
            None => grad.mul(&spread(&rstd, own.rank())?),
        })?;
        if !g.needs(3) && !g.needs(4) {
            return Ok(());
        }
        let made = channel_sums::DEF.run_all(&[grad.into(), (&own).into(), (&mean).into()])?;
        let [along, whole] = &made[..] else { return Err(no_result(&channel_sums::DEF)) };
        g.set(3, || along.mul(&rstd))?;
        return g.set(4, || Ok(whole.clone()));
    }
    let (x, grad) = (widened(&own)?, widened(grad)?);
    let in_x = |t: Tensor| spread(&cast(t, x.dtype())?, x.rank());
    let others: Vec<i64> = (0..x.rank() as i64).filter(|&d| d != 1).collect();
    let rstd = in_x(var)?.add(eps)?.rsqrt()?;
    let apart = x.sub(&in_x(mean)?)?;
    let of_x = match weight {
        Some(weight) => grad.mul(&rstd.mul(&in_x(weight)?)?)?,
        None => grad.mul(&rstd)?,
    };
    g.set(0, || Ok(of_x.clone()))?;
    g.set(1, || of_x.sum(&others)?.neg())?;
    g.set(2, || of_x.mul(&apart)?.mul(&rstd.square()?)?.sum(&others)?.mul(-0.5))?;
    g.set(3, || grad.mul(&apart)?.mul(&rstd)?.sum(&others))?;
    g.set(4, || grad.sum(&others))
}

fn arguments(sizes: &[usize], affine: bool) -> [SampleArg; 6] {
    let channels = &[sizes[1]][..];
    let [weight, bias] = match affine {
        true => [uniform(channels, 0.5, 1.5), plain(channels)],
        false => [SampleArg::None, SampleArg::None],
    };
    let [mean, var] = [uniform(channels, -0.5, 0.5), uniform(channels, 0.5, 2.0)];
    [plain(sizes), mean, var, weight, bias, SampleArg::Float(0.1)]
}

fn samples() -> Vec<Sample> {
    let shapes: [(&[usize], bool); 7] = [
        (&[4, 3], true),
        (&[2, 3, 2], false),
        (&[2, 2, 5, 7], true),
        (&[2, 9, 3, 5], true),
        (&[2, 9, 3, 5], false),
        (&[2, 1, 2, 1, 2], true),
        (&[0, 3, 2], true),
    ];
    shapes.iter().map(|&(sizes, affine)| sample(arguments(sizes, affine))).collect()
}

fn errors() -> Vec<ErrorSample> {
    let with = |i: usize, wrong: SampleArg, message: &'static str| {
        let mut args = arguments(&[2, 3], true);
        args[i] = wrong;
        error(args, message)
    };
    vec![
        with(0, plain(&[3]), "2 or more dimensions"),
        with(1, plain(&[2]), "of shape [3]"),
        with(2, uniform(&[1, 3], 0.5, 2.0), "of shape [3]"),
        with(3, plain(&[2]), "of shape [3]"),
    ]
}

/// `frozen_norm`: `(x - mean) / sqrt(var + eps) * weight + bias` with given statistics of shape `[channels]`: `batch_norm` in
/// evaluation.
pub static DEF: OpDef = OpDef::new(
    "frozen_norm(Tensor self, Tensor mean, Tensor var, Tensor? weight, Tensor? bias, \
     float eps) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0b1111, saves_outputs: 0, formula },
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.decomposed(|args| one(compose(args)));
