//! `layer_norm_backward`

use super::layer_norm::{check, leading, standardised};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, centred, in_format_of, optional, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{keeping, wrong_shape};
use crate::ops::sample::{SampleArg, error, plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(1)?;
    let lead = leading(args, 1, 2)?;
    if args.tensor(0)?.sizes() != t.sizes() {
        return Err(wrong_shape(
            args,
            0,
            format!("of the input's shape {:?}", t.sizes()),
            args.tensor(0)?.sizes(),
        ));
    }
    check(args, 3, &t.sizes()[lead..])?;
    let shape = Dims::from_slice(&t.sizes()[lead..]);
    let mut plan = keeping(t, t.dtype(), Dims::from_slice(t.sizes()), t.dtype())
        .and(shape.clone(), t.dtype(), Strides::Contiguous)
        .and(shape, t.dtype(), Strides::Contiguous);
    plan.cast = 0b1011;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<[Tensor; 3]> {
    let own = tensor(args, 1)?;
    let x = widened(&own)?;
    let in_x = |t: Tensor| cast(t, x.dtype());
    let grad = in_x(tensor(args, 0)?)?;
    let lead = x.rank() - args.ints(2)?.len();
    let dims: Vec<i64> = (lead..x.rank()).map(|d| d as i64).collect();
    let (distance, rstd) = standardised(&x, lead, args.float(4)?)?;
    let hat = distance.mul(&rstd)?;
    let inner = match optional(args, 3)? {
        Some(weight) => grad.mul(&in_x(weight)?)?,
        None => grad.clone(),
    };
    // Centred first: `hat` has mean 0, so a large mean of the gradient would only cost precision in the product.
    let inner = centred(&inner, &dims)?;
    let along = hat.mul(&inner.mul(&hat)?.mean_keepdim(&dims)?)?;
    let of_input = inner.sub(&along)?.mul(&rstd)?;
    // Weight and bias are shared by all samples.
    let leading: Vec<i64> = (0..lead as i64).collect();
    let summed = |t: Tensor| if lead == 0 { Ok(t) } else { t.sum(&leading) };
    let of_input = in_format_of(&own, cast(of_input, own.dtype())?)?;
    let [weight, bias] =
        [summed(grad.mul(&hat)?)?, summed(grad)?].map(|t| cast(t, own.dtype())?.contiguous());
    Ok([of_input, weight?, bias?])
}

/// `layer_norm_backward`: the gradients of input, weight and bias in one pass. Used where they are not differentiated again.
pub static DEF: OpDef = OpDef::new(
    "layer_norm_backward(Tensor grad, Tensor self, int[] normalized_shape, Tensor? weight=None, \
     Scalar eps=1e-05) -> (Tensor, Tensor, Tensor)",
    Rule::Structured(rule),
    Derivative::Missing("`layer_norm` uses tensor ops where its gradients are differentiated again"),
    || {
        let shape = || SampleArg::Ints(vec![4]);
        vec![
            sample([plain(&[3, 4]), plain(&[3, 4]), shape(), plain(&[4]), SampleArg::Float(0.1)]),
            sample([plain(&[3, 4]), plain(&[3, 4]), shape(), SampleArg::None, SampleArg::Float(0.1)]),
            sample([plain(&[4]), plain(&[4]), shape(), plain(&[4]), SampleArg::Float(0.1)]),
            sample([plain(&[2, 3, 4]), plain(&[2, 3, 4]), shape(), plain(&[4]), SampleArg::Float(0.1)]),
            sample([plain(&[0, 4]), plain(&[0, 4]), shape(), plain(&[4]), SampleArg::Float(0.1)]),
        ]
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let shape = SampleArg::Ints(vec![3]);
    let call =
        |grad: &[usize], shape, weight| [plain(grad), plain(&[3, 4]), shape, weight, SampleArg::Float(0.1)];
    let last = || SampleArg::Ints(vec![4]);
    vec![
        error(call(&[3, 4], shape, SampleArg::None), "normalized shape"),
        error(call(&[4], last(), SampleArg::None), "of the input's shape [3, 4]"),
        error(call(&[3, 4], last(), plain(&[3])), "of the normalized shape [4]"),
    ]
})
.decomposed(|args| Ok(compose(args)?.into_iter().map(Tensor::into_ref).collect()));
