//! `adam_step`: an Adam step for all parameters in one pass, which reads and writes parameters and moments once.

use super::lists::for_each_block;
use keyway_sdk::author::{Call, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};

/// The coefficients of a step.
#[derive(Clone, Copy)]
struct Step<A> {
    beta1: A,
    beta2: A,
    /// The weight of the gradient in each moment, `1 - beta`.
    rest1: A,
    rest2: A,
    eps: A,
    rate: A,
    decay: A,
    shrink: A,
}

/// A scalar argument, or the single element of an f64 tensor.
fn number(call: &Call<'_>, index: usize) -> Result<f64, Error> {
    match call.tensor(index)?.number() {
        Some(number) => Ok(number),
        None => Ok(call.view::<f64>(index)?.get(&[]).unwrap_or(f64::NAN)),
    }
}

impl<A: Real> Step<A> {
    fn of(call: &Call<'_>) -> Result<Self, Error> {
        let float = |i| call.float(i).map(A::from_f64);
        let rest = |i| call.float(i).map(|beta| A::from_f64(1.0 - beta));
        Ok(Step {
            beta1: float(4)?,
            beta2: float(5)?,
            rest1: rest(4)?,
            rest2: rest(5)?,
            eps: A::from_f64(number(call, 6)?),
            rate: A::from_f64(number(call, 7)?),
            decay: float(8)?,
            shrink: float(9)?,
        })
    }

    /// Updates a block of elements in the accumulation type; each operation is rounded separately.
    #[inline(always)]
    fn block<T: Float<Acc = A>, const DECAYS: bool>(self, [p, m, v]: [&mut [T]; 3], grad: &[T]) {
        for (((p, m), v), grad) in p.iter_mut().zip(m).zip(v).zip(grad) {
            let own = p.to_acc();
            // Without decay an infinite parameter must not contribute to its gradient.
            let g = if DECAYS { grad.to_acc() + self.decay * own } else { grad.to_acc() };
            let mean = self.beta1 * m.to_acc() + self.rest1 * g;
            let square = self.beta2 * v.to_acc() + self.rest2 * g * g;
            let moved = self.shrink * own - self.rate * mean / (square.sqrt() + self.eps);
            (*p, *m, *v) = (T::from_acc(moved), T::from_acc(mean), T::from_acc(square));
        }
    }
}

fn adam_step<T: Float>(call: &Call<'_>) -> Result<(), Error> {
    let step = Step::<T::Acc>::of(call)?;
    if step.decay == T::Acc::ZERO {
        for_each_block(call, [0, 2, 3], 1, |changed, grad| step.block::<T, false>(changed, grad))
    } else {
        for_each_block(call, [0, 2, 3], 1, |changed, grad| step.block::<T, true>(changed, grad))
    }
}

kernel!("adam_step", "LLLLffTTff>L", adam_step, [f32, f64, f16, bf16]);
