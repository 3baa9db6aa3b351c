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

mod activations;
mod add;
mod arithmetic;
mod copy;
mod div;
mod eq;
mod exp;
mod exponential;
mod fill;
mod ge;
mod gt;
mod le;
mod lt;
mod mul;
mod ne;
mod predicates;
mod rounding;
mod sub;
mod trigonometric;
mod where_;
