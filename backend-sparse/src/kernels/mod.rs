//! The kernels, one module for each kind of op.

/// Registers one function for an op on sparse tensors of every dtype that has numbers.
macro_rules! kernel {
    ($op:literal, $signature:literal, $run:expr) => {
        kernel!($op, $signature, "sparse_coo", $run);
    };
    ($op:literal, $signature:literal, $layout:literal, $run:expr) => {
        keyway_sdk::register_kernel! {
            op: $op, signature: $signature, device: "cpu", layout: $layout,
            flags: allocates,
            f16 => $run, bf16 => $run, f32 => $run, f64 => $run,
            i8 => $run, i16 => $run, i32 => $run, i64 => $run,
            u8 => $run, u16 => $run, u32 => $run, u64 => $run,
        }
    };
}

/// Registers one function for an op on sparse tensors of floats.
macro_rules! float_kernel {
    ($op:literal, $signature:literal, $run:expr) => {
        keyway_sdk::register_kernel! {
            op: $op, signature: $signature, device: "cpu", layout: "sparse_coo",
            flags: allocates,
            f16 => $run, bf16 => $run, f32 => $run, f64 => $run,
        }
    };
}

mod add;
mod amax;
mod cat;
mod coalesce;
mod dot;
mod embedding_sparse;
mod expand;
pub mod gather;
mod index_select;
mod memory;
mod mm;
mod mul;
mod norm;
mod permute;
mod pow;
mod product;
mod sampled_mm;
mod select;
mod shape;
mod softmax;
mod sparse_mask;
mod sum;
mod unary;
