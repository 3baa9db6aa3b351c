//! The parts that `addmm` and `baddbmm` share: `beta * self + alpha * product`.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, one, tensor, widened};
use crate::ops::rules::{FIRST, FIRST_THREE, whole_factor};
use keyway_dispatcher::dims::{Dims, broadcast};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Outputs, Plan, Strides};

/// The rule of arguments `(self, left, right, beta, alpha)`; `product_sizes` computes the sizes of the product of two
/// arguments.
pub(super) fn rule(
    args: &Args<'_>,
    product_sizes: fn(&Args<'_>, usize, usize) -> RuleResult<Dims>,
) -> RuleResult<Plan> {
    let sizes = product_sizes(args, 1, 2)?;
    let own = args.tensor(0)?.sizes();
    if broadcast(args.name(), own, &sizes)? != sizes {
        let expected = format!("of a shape that broadcasts to {sizes:?}");
        return Err(Error::Shape { op: args.name(), argument: "self", expected, got: own.into() });
    }
    let dtype = args.promote(FIRST_THREE)?;
    whole_factor(args, 3, dtype)?;
    whole_factor(args, 4, dtype)?;
    let mut plan = Plan::one(dtype, sizes, dtype, Strides::Contiguous);
    plan.cast = FIRST_THREE;
    plan.broadcast = FIRST;
    Ok(plan)
}

/// The decomposition: f16 and bf16 are rounded once, after the sum. With a `beta` of 0 `self` is ignored, even NaN.
pub(super) fn compose(
    args: &Args<'_>,
    product: fn(&Tensor, &Tensor) -> Result<Tensor>,
    sizes: &[usize],
) -> RuleResult<Outputs> {
    let dtype = args.promote(FIRST_THREE)?;
    let wide = |i: usize| widened(&cast(tensor(args, i)?, dtype)?);
    let sum = || -> Result<Tensor> {
        let product = scaled(product(&wide(1)?, &wide(2)?)?, args.get(4))?;
        if args.float(3)? == 0.0 {
            return cast(product, dtype);
        }
        cast(scaled(wide(0)?, args.get(3))?.expand(sizes)?.add(&product)?, dtype)
    };
    one(sum())
}

/// `grad` times a factor argument.
pub(super) fn scaled(grad: Tensor, factor: Arg<'_>) -> Result<Tensor> {
    if matches!(factor, Arg::Int(1)) { Ok(grad) } else { grad.mul(factor) }
}
