//! The kernels, one file for each op.

/// Registers a generic kernel of a strided op for each of the element types.
macro_rules! kernel {
    ($op:literal, $signature:literal, $run:ident, [$($dtype:ident),+ $(,)?]) => {
        keyway_sdk::register_kernel! {
            op: $op, signature: $signature, device: "cpu", layout: "strided",
            $($dtype => $run::<$dtype>),+
        }
    };
}
pub(crate) use kernel;

mod number;
mod quotient;
mod reduction;

mod activations;
mod add;
mod amax;
mod any;
mod argmax;
mod arithmetic;
mod copy;
mod cumsum;
mod div;
mod eq;
mod exponential;
mod fill;
mod ge;
mod gt;
mod layer_norm;
mod le;
mod logsumexp;
mod lt;
mod mean;
mod mul;
mod ne;
mod nll_loss;
mod norm;
mod predicates;
mod prod;
mod rounding;
mod softmax;
mod sub;
mod sum;
mod trigonometric;
mod var;
mod where_;
