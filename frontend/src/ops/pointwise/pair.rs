//! Shared parts of the decompositions of ops of two real operands.

use crate::autograd::{Backward, is_grad_enabled};
use crate::error::Result;
use crate::ops::composite::{cast, wide, widened};
use crate::ops::rules::{FIRST_TWO, float_of, wrong_value};
use crate::{DType, Tensor};
use keyway_dispatcher::op::{Arg, Args};

/// The first two arguments in the float compute dtype, with f16 and bf16 widened to f32, and the dtype of the result: the
/// promoted dtype, with integers as f32. A number becomes a 0-d tensor, so that it is rounded as an element is.
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

/// The first two arguments of a recorded call; a number becomes a 0-d tensor on the gradient's device.
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

/// Two operands, with f16 and bf16 widened to f32, divided by the larger magnitude: both are at most 1 and one is 1 (except at
/// the origin), so their squares do not overflow and the sum of squares does not underflow.
pub(super) struct Legs {
    pub first: Tensor,
    pub second: Tensor,
    /// The divisor: detached, since the formulas are invariant to the scale.
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
            // At the origin the derivatives of every order are defined as 0.
            if is_grad_enabled() { none.where_cond(0, &made) } else { Ok(made) }
        };
        Ok(Legs { first: over(&first)?, second: over(&second)?, longer })
    }

    /// The hypotenuse, from 1 to `sqrt(2)`; 1/2 at the origin, where both operands are 0.
    pub(super) fn length(&self) -> Result<Tensor> {
        self.first.hypot(&self.second)?.maximum(0.5)
    }
}
