//! `sgd_step`: an SGD step for all parameters in one pass, which reads and writes parameters and momentum buffers once.

use super::lists::for_each_block;
use keyway_sdk::author::{Call, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};

/// The coefficients of a step.
#[derive(Clone, Copy)]
struct Step<A> {
    /// The factors of the momentum buffer and of the gradient added to it; if `keep` is `None`, the buffer is not read.
    keep: Option<A>,
    share: A,
    /// The weight decay, as a factor of the parameter added to the gradient.
    decay: A,
    /// The factor of the parameter, for decoupled weight decay.
    shrink: A,
    /// The factors of the gradient and of the buffer that are subtracted from the parameter.
    of_grad: A,
    of_buffer: A,
}

impl<A: Real> Step<A> {
    fn of(call: &Call<'_>, has_buffers: bool) -> Result<Self, Error> {
        let [lr, momentum, dampening] = [call.float(3)?, call.float(4)?, call.float(5)?];
        let (weight_decay, nesterov, first) = (call.float(6)?, call.bool(7)?, call.bool(8)?);
        let share = if first { 1.0 } else { 1.0 - dampening };
        // The update is the buffer alone, or has the gradient as a separate addend.
        let apart = nesterov || !has_buffers;
        let of_buffer = if apart { lr * momentum } else { lr };
        Ok(Step {
            keep: (!first).then_some(A::from_f64(momentum)),
            share: A::from_f64(share),
            decay: A::from_f64(share * weight_decay),
            shrink: A::from_f64(if apart { 1.0 - lr * weight_decay } else { 1.0 }),
            of_grad: A::from_f64(if apart { lr } else { 0.0 }),
            of_buffer: A::from_f64(of_buffer),
        })
    }

    /// Updates a block of elements without momentum, in the accumulation type; each operation is rounded separately.
    #[inline(always)]
    fn plain<T: Float<Acc = A>>(self, p: &mut [T], grad: &[T]) {
        for (p, grad) in p.iter_mut().zip(grad) {
            *p = T::from_acc(self.shrink * p.to_acc() - self.of_grad * grad.to_acc());
        }
    }

    /// As [`Step::plain`], with momentum buffers.
    #[inline(always)]
    fn block<T: Float<Acc = A>, const KEEPS: bool, const SEPARATE: bool>(
        self,
        [p, v]: [&mut [T]; 2],
        grad: &[T],
    ) {
        let keep = self.keep.unwrap_or(A::ZERO);
        for ((p, v), grad) in p.iter_mut().zip(v).zip(grad) {
            let (own, grad) = (p.to_acc(), grad.to_acc());
            // The content of the buffer before the first step, possibly infinite, must not contribute.
            let kept = if KEEPS { keep * v.to_acc() + self.share * grad } else { grad };
            // Without weight decay, an infinite parameter must not contribute to its buffer.
            let buffer = if self.decay == A::ZERO { kept } else { kept + self.decay * own };
            let own = if SEPARATE { self.shrink * own - self.of_grad * grad } else { own };
            *p = T::from_acc(own - self.of_buffer * buffer);
            *v = T::from_acc(buffer);
        }
    }
}

fn sgd_step<T: Float>(call: &Call<'_>) -> Result<(), Error> {
    let has_buffers = !call.tensors(2)?.is_empty();
    let step = Step::<T::Acc>::of(call, has_buffers)?;
    if !has_buffers {
        return for_each_block(call, [0], 1, |[p], grad| step.plain::<T>(p, grad));
    }
    match (step.keep.is_some(), call.bool(7)?) {
        (false, false) => for_each_block(call, [0, 2], 1, |c, g| step.block::<T, false, false>(c, g)),
        (false, true) => for_each_block(call, [0, 2], 1, |c, g| step.block::<T, false, true>(c, g)),
        (true, false) => for_each_block(call, [0, 2], 1, |c, g| step.block::<T, true, false>(c, g)),
        (true, true) => for_each_block(call, [0, 2], 1, |c, g| step.block::<T, true, true>(c, g)),
    }
}

kernel!("sgd_step", "LLLffffbb>L", sgd_step, [f32, f64, f16, bf16]);
