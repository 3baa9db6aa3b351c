//! The kernels, one file for each op.

/// Registers a generic kernel for f32, f64, c64 and c128.
macro_rules! kernel {
    ($op:literal, $signature:literal, $run:ident) => {
        keyway_sdk::register_kernel! {
            op: $op, signature: $signature, device: "cpu", layout: "strided",
            f32 => $run::<f32>, f64 => $run::<f64>,
            c64 => $run::<keyway_sdk::author::c64>, c128 => $run::<keyway_sdk::author::c128>,
        }
    };
}

mod cholesky;
mod eig;
mod eigh;
mod lu_factor;
mod lu_solve;
mod qr;
mod solve_triangular;
mod svd;
