//! What ops of two real operands that are composed of others share.

use crate::autograd::{Backward, is_grad_enabled};
use crate::error::Result;
use crate::ops::composite::{cast, wide, widened};
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
        number => {
            let grad = b.grad(0)?;
            Tensor::full_with((), number, (wide(grad.dtype()), grad.device()))
        }
    };
    Ok([operand(0)?, operand(1)?])
}

/// The legs of right-angled triangles, f16 and bf16 widened to f32, over the longer one of each: none of them is above 1, and one is
/// 1 but at the origin, so that neither their squares overflow nor does the sum of these vanish.
pub(super) struct Legs {
    pub first: Tensor,
    pub second: Tensor,
    /// What both were divided by: a constant to derivatives, as formulas of the legs do not depend on the scale.
    pub longer: Tensor,
}

impl Legs {
    pub(super) fn of(first: &Tensor, second: &Tensor) -> Result<Legs> {
        use crate::ops::composite::real;
        let (first, second) = (real(first)?, real(second)?);
        let longer = first.detach().abs()?.maximum(&second.detach().abs()?)?;
        let none = longer.eq(0)?;
        let longer = none.where_cond(1, &longer)?;
        let over = |leg: &Tensor| {
            let made = leg.div(&longer)?;
            // At the origin there is no derivative of any order.
            if is_grad_enabled() { none.where_cond(0, &made) } else { Ok(made) }
        };
        Ok(Legs { first: over(&first)?, second: over(&second)?, longer })
    }

    /// The hypotenuse, from 1 to the square root of 2; 1/2 at the origin, whose shares of it are 0.
    pub(super) fn length(&self) -> Result<Tensor> {
        self.first.hypot(&self.second)?.maximum(0.5)
    }
}
