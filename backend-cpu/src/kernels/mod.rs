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

mod indexed;
mod number;
mod quotient;

mod activations;
mod add;
mod addcdiv;
mod addcmul;
mod arange;
mod arithmetic;
mod atan2;
mod bitwise_and;
mod bitwise_or;
mod bitwise_shift;
mod bitwise_xor;
mod clamp;
mod copy;
mod div;
mod eq;
mod exponential;
mod fill;
mod fmod;
mod ge;
mod gt;
mod le;
mod lerp;
mod logical;
mod lt;
mod maximum;
mod minimum;
mod mul;
mod ne;
mod pow;
mod predicates;
mod random;
mod remainder;
mod rounding;
mod sub;
mod triangle;
mod trigonometric;
mod where_;
