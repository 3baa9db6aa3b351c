//! The kernels, one module for each kind of op.

/// Registers one function for an op on coordinates, or on tensors of another layout, of every dtype that has numbers.
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

/// Registers one function for an op on coordinates and on compressed rows: an op that takes matrices.
macro_rules! kernels {
    ($op:literal, $signature:literal, $run:expr) => {
        kernel!($op, $signature, "sparse_coo", $run);
        kernel!($op, $signature, "sparse_csr", $run);
    };
}

/// Registers one function for an op on coordinates of floats, or on tensors of another layout.
macro_rules! float_kernel {
    ($op:literal, $signature:literal, $run:expr) => {
        float_kernel!($op, $signature, "sparse_coo", $run);
    };
    ($op:literal, $signature:literal, $layout:literal, $run:expr) => {
        keyway_sdk::register_kernel! {
            op: $op, signature: $signature, device: "cpu", layout: $layout,
            flags: allocates,
            f16 => $run, bf16 => $run, f32 => $run, f64 => $run,
        }
    };
}

/// As [`kernels`], of floats.
macro_rules! float_kernels {
    ($op:literal, $signature:literal, $run:expr) => {
        float_kernel!($op, $signature, "sparse_coo", $run);
        float_kernel!($op, $signature, "sparse_csr", $run);
    };
}

mod add;
mod amax;
mod by_dense;
mod by_sparse;
mod cat;
mod coalesce;
mod dealt;
mod dot;
mod embedding_sparse;
mod expand;
pub mod gather;
mod index_select;
mod memory;
mod merge;
mod mm;
mod mul;
mod norm;
mod permute;
mod pow;
mod product;
mod sampled_mm;
mod scattered;
mod select;
mod shape;
mod softmax;
mod sparse_mask;
mod sum;
mod to_sparse_csr;
mod unary;
