//! What `addmm` and `baddbmm` share: `beta * self + alpha * product`.

use crate::Tensor;
use crate::error::Result;
use crate::ops::rules::{FIRST, FIRST_THREE};
use keyway_dispatcher::dims::{Dims, broadcast};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Strides};

/// Arguments `(self, left, right, beta, alpha)`, where `product_sizes` gives the sizes of the product of two
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
    let mut plan = Plan::one(dtype, sizes, dtype, Strides::Contiguous);
    plan.cast = FIRST_THREE;
    plan.broadcast = FIRST;
    Ok(plan)
}

/// `grad` times a factor of the call.
pub(super) fn scaled(grad: Tensor, factor: Arg<'_>) -> Result<Tensor> {
    if matches!(factor, Arg::Int(1)) { Ok(grad) } else { grad.mul(factor) }
}
