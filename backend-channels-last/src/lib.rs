//! The CPU kernels of Keyway for images in the memory format channels_last, a plugin.
//!
//! It complements the CPU backend, whose strided kernels accept images of any format: the kernels of this library are
//! selected only for channels_last, and if one reports that it does not support a call, the strided kernel runs.
//! Convolutions are those of `keyway-cpu-conv`, which the CPU backend uses too; norms are implemented in this library.
//!
//! Decisions:
//! - f16 and bf16 are computed and accumulated in f32, convolutions of bf16 by the processor's matrix unit (AMX) or its
//!   vector dot products (AVX-512 BF16), which are detected at run time; both flush subnormal values to 0;
//! - work is split by the sizes alone, never by the number of threads, so that results do not depend on it;
//! - each element of a result is summed in one order, regardless of its block.

mod kernels;

keyway_sdk::plugin! {
    name: "keyway-channels-last",
    version: env!("CARGO_PKG_VERSION"),
    description: "CPU kernels for channels_last images",
    devices: ["cpu"],
    layouts: ["channels_last"],
}
