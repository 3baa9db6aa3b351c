//! Keyway's kernels for NVIDIA's GPUs, a plugin: the device `cuda`.
//!
//! The library is one file. It links nothing of NVIDIA's: the driver is opened when the device is first asked for, and the
//! kernels lie in the library as compressed images. It has run on one kind of GPU (`benches/RESULTS.md`), and is tested on a
//! stand-in for the driver (`test-plugins/cuda-driver`), which runs the same kernel sources on the processor, and on ones for
//! cuBLASLt and cuDNN.
//!
//! Decisions:
//! - the driver's functions are resolved here, once, from `libcuda.so.1` (`driver/library.rs`), and `cudarc` gives the
//!   types: its own loader takes a toolkit's stub library first, takes no path, and panics where a function is missing;
//! - the safe layer of `cudarc` is not used: it records events that the host orders itself, and hands the errors of what
//!   is dropped to the next unrelated call;
//! - the `.cu` files in `kernels/` are the one list of kernels. Each has lines that say op, signature, host function and
//!   dtypes; the build script makes registrations of them, the C++ preprocessor entries;
//! - images are PTX of the lowest chip that is served, and of a family that names more targets (`tensor.cu`, whose kernels
//!   multiply bf16 from capability 8.0 on) one for each, of which a device loads the highest that it can. They are compiled
//!   by NVRTC 12.9, so the oldest driver is one of CUDA 12.9.
//!   An image is taken apart by entries, and each entry is loaded when it is first launched: the driver compiles PTX
//!   slowly, and a program needs few of some two thousand;
//! - memory comes from a cache for each stream. A block that is freed serves the same stream at once, since its work is
//!   in order, and never another one before the device was waited for. On request its segments are ranges of addresses
//!   that grow in place (`memory/ranges.rs`);
//! - where a person asks, the library says which of NVIDIA's libraries it found and what goes without the others, and what
//!   its memory is cut into (`report.rs`); a call never depends on it;
//! - captured work is a graph of the driver's (`capture.rs`). Memory that kernels take and give back meanwhile is a pool of that
//!   graph's own; what waits for the captured stream is refused before the driver is asked, so that the capture ends in order.
//!   A kernel that makes a table on the host, or divides whole numbers, cannot be captured yet;
//! - a step of an optimiser is one launch for 88 tensors, whose addresses are in the kernel's argument: no table is copied, so
//!   that the launch can be captured;
//! - kernels whose inputs may be wrong in their values (a whole number divided by 0, an index or a place that is not there, a
//!   target that is no class) look first, and wait for the answer: the error is the call's. Where work is captured, or
//!   `KEYWAY_CUDA_INDEX_CHECKS=later` asks for it, nobody waits for a look at indices (`checks.rs`): the kernel reads numbers
//!   that are all right, and the next wait for the device is the error, which names op, argument and number;
//! - what is written or added at indices takes the sources of a place in their order, by a stable sort of the places: there
//!   are no atomic sums, and sums have the bits of the CPU's. Sorts are one radix sort, which short lines replace by
//!   counting;
//! - products of matrices of f16, bf16, f32 and f64 are cuBLASLt's where it is installed (`blas/`), by calls of it that are
//!   resolved here like the driver's: `cudarc`'s safe layer always takes TF32 for f32, has no f64, and makes descriptors anew each
//!   time. f32 is summed in f32, f16 and bf16 in f32; transposed sides are flags, not copies. An algorithm is kept for each
//!   kind of product and adds up parts of sums from a workspace; by NVIDIA's documentation bits are then the same on every
//!   run. Of cuBLAS only the `Lt` library is used: it has no state that streams share. Where it is missing, the log
//!   says so once and own kernels serve; a call of it that fails is an error;
//! - convolutions of f16, bf16 and f32 are cuDNN's where it is installed (`dnn/`), by engines that keep the digits and the bits;
//! - else products, and convolutions, are one tiled kernel (`kernels/tile.cuh`) on the chip's ordinary units. Few
//!   results of many terms are split over blocks by sizes alone, and the parts are added up in order;
//! - of f16, and of bf16 from capability 8.0 on, the same products go by tensor cores (`kernels/tensor_tile.cuh`), summed in
//!   f32, where there are 8 rows, columns and terms. Products and convolutions of f32 do so, as TF32, where the program lets
//!   factors be rounded (`Gpu::rounds`), which each call asks the host for; cuBLASLt is given the same leave. The instructions
//!   stand behind functions of a few lines (`kernels/tensor.cuh`), which the stand-in emulates;
//! - attention keeps no scores (`kernels/attention.cu`, and by tensor cores `kernels/attention_cores.cuh`): queries go over
//!   the keys by tiles, and gradients compute the scores again, that of the query in blocks over queries, those of key and
//!   value in blocks over keys, so that no sum needs an atomic. Heads of more than 256 numbers and dropout go to the
//!   decomposition. By tensor cores a weight is the sum of two numbers of the operands' dtype, half again as many
//!   products for the digits of f32. On chips of capability 9.0 the forward pass without a mask goes by products of warpgroups
//!   (`kernels/attention_groups.cuh`), whose image, of `compute_90a`, no other chip loads, and whose blocks share more memory than
//!   is given without asking;
//! - tensors of coordinates (`sparse_coo`) are served here, so that no other library is needed for them on this device. Entries
//!   of one place are found by a sort and added up by one thread each, in their order; a product by rows has a thread for
//!   each element of its result. Both are as slow as their longest place or row. The host waits where indices are looked at and
//!   where a count decides a size;
//! - pooling and interpolation are sums and maxima by tables, which the host makes for each call, and their gradients are
//!   the same with the tables transposed: each thread writes its own element, so no sum needs an atomic.
#![deny(missing_docs)]

mod blas;
mod capture;
mod checks;
mod device;
mod dnn;
mod driver;
mod gpu;
mod kernels;
mod libraries;
mod memory;
mod modules;
mod report;

keyway_sdk::plugin! {
    name: "keyway-cuda",
    version: env!("CARGO_PKG_VERSION"),
    description: "Kernels for NVIDIA's GPUs",
    devices: ["cuda"],
    layouts: ["strided", "sparse_coo"],
    setup: |contents| {
        kernels::sparse::layout::learn_number()?;
        contents.device(&device::API);
        contents.layout(&kernels::sparse::layout::API).layout_ops(&kernels::sparse::layout::OPS);
        Ok(())
    },
}
