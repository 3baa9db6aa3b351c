//! The kernels, one module for each kind of op.

/// Registers kernels with [`keyway_sdk::register_kernel`].
#[cfg(not(test))]
macro_rules! register {
    ($($kernels:tt)+) => { keyway_sdk::register_kernel! { $($kernels)+ } };
}
/// The variant for unit tests, which call functions directly: it registers nothing, so that kernels are type-checked but
/// not compiled a second time.
#[cfg(test)]
macro_rules! register {
    (
        op: $op:literal, signature: $signature:literal, device: "cpu", layout: $layout:literal, flags: allocates,
        $($dtype:ident => $run:expr),+ $(,)?
    ) => {
        const _: &[fn(&keyway_sdk::author::Call<'_>) -> Result<(), keyway_sdk::author::Error>] = &[$($run),+];
    };
}

/// Registers one function for an op on COO, or on tensors of another layout, for every numeric dtype.
macro_rules! kernel {
    ($op:literal, $signature:literal, $run:expr) => {
        kernel!($op, $signature, "sparse_coo", $run);
    };
    ($op:literal, $signature:literal, $layout:literal, $run:expr) => {
        register! {
            op: $op, signature: $signature, device: "cpu", layout: $layout,
            flags: allocates,
            f16 => $run, bf16 => $run, f32 => $run, f64 => $run,
            i8 => $run, i16 => $run, i32 => $run, i64 => $run,
            u8 => $run, u16 => $run, u32 => $run, u64 => $run,
        }
    };
}

/// Registers one function for an op on COO and on CSR: an op on matrices.
macro_rules! kernels {
    ($op:literal, $signature:literal, $run:expr) => {
        kernel!($op, $signature, "sparse_coo", $run);
        kernel!($op, $signature, "sparse_csr", $run);
    };
}

/// Registers one function for an op on COO tensors of floats, or on tensors of another layout.
macro_rules! float_kernel {
    ($op:literal, $signature:literal, $run:expr) => {
        float_kernel!($op, $signature, "sparse_coo", $run);
    };
    ($op:literal, $signature:literal, $layout:literal, $run:expr) => {
        register! {
            op: $op, signature: $signature, device: "cpu", layout: $layout,
            flags: allocates,
            f16 => $run, bf16 => $run, f32 => $run, f64 => $run,
        }
    };
}

/// As [`kernels`], for floats.
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
