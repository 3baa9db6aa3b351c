//! What ops of two real operands that are composed of others share.

use crate::autograd::Backward;
use crate::error::Result;
use crate::ops::composite::{cast, widened};
use crate::ops::rules::{FIRST_TWO, float_of, wrong_value};
use crate::{DType, Tensor};
use keyway_dispatcher::op::{Arg, Args};

/// The first two arguments in the float dtype of the computation, f16 and bf16 widened to f32, and the dtype of the result:
/// what they promote to, integers as f32. A number becomes a tensor of no dimensions, so that it is rounded as an element is.
pub(super) fn real(args: &Args<'_>) -> Result<(Tensor, Tensor, DType)> {
    let dtype = float_of(args.promote(FIRST_TWO)?);
    let tensor = |i: usize| -> Result<Option<Tensor>> {
        let Arg::Tensor(t) = args.get(i) else { return Ok(None) };
        Ok(Some(widened(&cast(Tensor::from_ref(t.clone()), dtype)?)?))
    };
    let beside = |t: &Tensor, i: usize| t.new_full((), args.get(i));
    Ok(match (tensor(0)?, tensor(1)?) {
        (Some(x), Some(y)) => (x, y, dtype),
        (Some(x), None) => {
            let y = beside(&x, 1)?;
            (x, y, dtype)
        }
        (None, Some(y)) => (beside(&y, 0)?, y, dtype),
        (None, None) => return Err(wrong_value(args, 0, "a tensor, or `other` one".to_string()).into()),
    })
}

/// The first two arguments of a recorded call; a number as a tensor of no dimensions beside the gradient.
pub(super) fn saved(b: &Backward<'_>) -> Result<[Tensor; 2]> {
    let operand = |i: usize| match b.saved(i)?.arg() {
        Arg::Tensor(t) => Ok(Tensor::from_ref(t.clone())),
        number => b.grad(0)?.new_full((), number),
    };
    Ok([operand(0)?, operand(1)?])
}
