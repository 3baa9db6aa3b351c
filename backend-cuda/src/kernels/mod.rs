//! Host code of the kernels, one file for each family: `NAME.rs` for `kernels/NAME.cu`.
//!
//! A host function is `fn(&Call, Kernel) -> Result<(), Error>`. It reads the call, fills in the kernel's parameter
//! structure, and launches the kernel.

use crate::gpu::{Gpu, gpu};
use keyway_sdk::author::{Call, Error};

/// A line of a kernel file, for one dtype.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The file's name, which is also the name of the image.
    pub family: &'static str,
    /// The op, which is also the name of the kernel.
    pub name: &'static str,
    /// The compute dtype, as in kernel names.
    pub dtype: &'static str,
}

impl Kernel {
    /// Another kernel of the same file.
    pub fn variant(self, name: &'static str) -> Kernel {
        Kernel { name, ..self }
    }
}

/// Registers an op's kernels, in calls that the build script generates. Unit tests call functions directly: their program
/// registers nothing, so that kernels are type-checked but not compiled a second time.
macro_rules! register {
    (
        $op:literal, $signature:literal, $family:literal, $layout:literal, $host:ident, [$($dtype:ident),+]
        $(, $flag:ident)?
    ) => {
        #[cfg(not(test))]
        keyway_sdk::register_kernel! {
            op: $op, signature: $signature, device: "cuda", layout: $layout,
            $(flags: $flag,)?
            $($dtype => |call| {
                $host(call, $crate::kernels::Kernel { family: $family, name: $op, dtype: stringify!($dtype) })
            }),+
        }
        #[cfg(test)]
        const _: fn(&keyway_sdk::author::Call<'_>, $crate::kernels::Kernel) -> Result<(), keyway_sdk::author::Error> = $host;
    };
}

/// Includes the registrations of `kernels/NAME.cu`.
macro_rules! family {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
    };
}

mod elements;
mod indices;
mod launch;
mod map;
mod nets;
mod scratch;
mod space;
mod tables;

mod activations;
mod arrange;
mod attention;
mod binary;
mod cast;
mod choose;
mod compare;
mod conv;
mod convolved;
mod cross;
mod distances;
mod embedding_bag;
mod grid_sample;
mod index;
mod losses;
mod lowered;
mod moments;
mod norms;
mod order;
mod product;
mod random;
mod reduce;
mod resample;
mod scan;
mod scatter;
mod softmax;
pub mod sparse;
mod special;
mod step;
mod ternary;
mod triangle;
mod unary;
mod unpool;

pub use nets::Image;
pub use scratch::{On, Scratch};

/// The device of a call, by its output.
fn device_of(call: &Call<'_>) -> Result<&'static Gpu, Error> {
    gpu(u32::from(call.output(0)?.device_index()))
}
