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

mod accumulate;
mod cells;
mod indices;
mod nest;
mod number;
mod order;

mod add;
mod cat;
mod constant_pad;
mod copy;
mod exp;
mod fill;
mod flip;
mod gather;
mod index;
mod index_put;
mod index_select;
mod masked_fill;
mod mul;
mod nonzero;
mod one_hot;
mod repeat;
mod roll;
mod scatter;
mod scatter_add;
mod searchsorted;
mod sort;
mod unique;
