//! `max_pool_backward`

use super::geometry::{rank, sizes, with_spatial};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{FIRST, FIRST_TWO, require, wrong_shape};
use crate::ops::sample::{Fill, SampleArg, error, fixed, index, plain, sample};
use crate::{DType, Tensor, error::Result};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

pub(super) fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (rank, grad, indices) = (rank(args, 0)?, args.tensor(0)?, args.tensor(1)?);
    require(args, 1, indices.dtype(), indices.dtype().is_integer(), "integers: indices in a channel")?;
    if indices.sizes() != grad.sizes() {
        let expected = format!("of the shape of `{}`, {:?}", args.op.schema.param_name(0), grad.sizes());
        return Err(wrong_shape(args, 1, expected, indices.sizes()));
    }
    let sizes = with_spatial(grad.sizes(), &sizes(args, 2, rank)?);
    let mut plan = Plan::one(grad.dtype(), sizes, grad.dtype(), Strides::Images(FIRST_TWO));
    plan.cast = FIRST;
    plan.cast_index = 0b10;
    Ok(plan)
}

/// Gathers the elements of each channel at these flat indices.
pub(super) fn at(t: &Tensor, indices: &Tensor) -> Result<Tensor> {
    let flat = |t: &Tensor| {
        let [batch, channels, spatial @ ..] = t.shape() else { return Ok(t.clone()) };
        t.reshape_as_sizes(&[*batch, *channels, spatial.iter().product()])
    };
    flat(t)?.gather(2, &flat(indices)?)?.reshape_as_sizes(indices.shape())
}

/// `max_pool_backward`: zeros of the input's shape, to which each element of the gradient is added at its index in the channel,
/// in the order of the gradient's elements.
pub static DEF: OpDef = OpDef::new(
    "max_pool_backward(Tensor grad, Tensor indices, int[] input_sizes) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(0b10, |b, g| g.set(0, || at(b.grad(0)?, &b.input(1)?))),
    || {
        let call = |grad: &[usize], sizes: &[i64]| {
            let places = index(grad, sizes.iter().product());
            sample([plain(grad), places, SampleArg::Ints(sizes.to_vec())])
        };
        vec![
            call(&[2, 2, 3], &[5]),
            call(&[2, 3, 2, 2], &[4, 5]),
            call(&[2, 3, 4, 5], &[4, 5]),
            call(&[1, 2, 2, 1, 3], &[2, 3, 4]),
            call(&[1, 35, 1, 2], &[2, 1]),
            call(&[2, 9, 1, 1], &[1, 1]),
            call(&[0, 2, 2, 2], &[4, 4]),
        ]
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |grad: &[usize], indices: SampleArg, sizes: &[i64], message| {
        error([plain(grad), indices, SampleArg::Ints(sizes.to_vec())], message)
    };
    let at = |v: f64| fixed(&[1, 1, 2], DType::I64, Fill::Values(vec![v]));
    vec![
        call(&[2], index(&[2], 2), &[2], "of 3 to 5 dimensions"),
        call(&[1, 1, 2], index(&[2], 2), &[4], "of the shape of `grad`, [1, 1, 2]"),
        call(&[1, 1, 2], fixed(&[1, 1, 2], DType::F32, Fill::Index(2)), &[4], "integers"),
        call(&[1, 1, 2], index(&[1, 1, 2], 2), &[4, 4], "1 numbers of 1 or more"),
        call(&[1, 1, 2], at(4.0), &[4], "0..4"),
        call(&[1, 1, 2], at(-1.0), &[4], "0..4"),
    ]
});
