//! The kernels. `keyway explain OP` prints the signature that each one names.

mod copy;
mod index;
mod matrix;
mod pointwise;
mod random;
mod reduce;

/// Registers a kernel of this device for several dtypes: `kernel!("exp", "T>T", [f32 => exp::<f32>]);`
macro_rules! kernel {
    ($op:literal, $signature:literal, [$($dtype:ident => $run:expr),* $(,)?]) => {
        keyway_sdk::register_kernel! {
            op: $op, signature: $signature, device: "example.org/arena", layout: "strided",
            $($dtype => $run,)*
        }
    };
}

pub(crate) use kernel;
