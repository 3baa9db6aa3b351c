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

mod gemv;
mod indexed;
mod number;
mod product;
mod quotient;

mod activations;
mod add;
mod addcdiv;
mod addcmul;
mod addmm;
mod arange;
mod arithmetic;
mod atan2;
mod baddbmm;
mod bitwise_and;
mod bitwise_or;
mod bitwise_shift;
mod bitwise_xor;
mod bmm;
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
mod mm;
mod mul;
mod mv;
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
