//! Keyway's CPU kernels for images in the memory format channels_last, a plugin.
//!
//! Beside the CPU backend, whose strided kernels serve images of any format: what this library registers is chosen for
//! channels_last alone, and where it answers that it does not support a call, the strided kernel takes it. Convolutions are
//! those of `keyway-cpu-conv`, which the CPU backend has too; norms are this library's own.
//!
//! Decisions:
//! - f16 and bf16 are computed and accumulated in f32, convolutions of bf16 by the processor's tile unit (AMX) or its dot
//!   products of vectors (AVX-512 BF16), which are found at run time; both take subnormal numbers for 0;
//! - work is split by the sizes alone, never by the number of threads, so that results do not depend on it;
//! - each element of a result is summed in one order, whatever block it lies in.

mod kernels;

keyway_sdk::plugin! {
    name: "keyway-channels-last",
    version: env!("CARGO_PKG_VERSION"),
    description: "CPU kernels for channels_last images",
    devices: ["cpu"],
    layouts: ["channels_last"],
}
