//! The CUDA backend of Keyway, a plugin: the device `cuda` for NVIDIA GPUs.
//!
//! The library is one file, and is linked with no NVIDIA library: the driver is loaded when the device is first used, and
//! the kernels are embedded as compressed PTX images. It has run on one kind of GPU (`benches/RESULTS.md`), and is tested
//! with an emulator of the driver (`test-plugins/cuda-driver`), which runs the same kernel sources on the CPU, and with
//! emulators of cuBLASLt and cuDNN.
//!
//! Decisions:
//! - the driver's functions are resolved here, once, from `libcuda.so.1` (`driver/library.rs`), and `cudarc` provides the types:
//!   its own loader prefers a toolkit's stub library, accepts no path, and panics if a function is missing;
//! - the safe layer of `cudarc` is not used: it records events that the host orders itself, and passes errors of dropped objects
//!   to the next unrelated call;
//! - the `.cu` files in `kernels/` are the single list of kernels. Each has lines with op, signature, host function and dtypes;
//!   the build script generates registrations from them, the C++ preprocessor entries;
//! - images are PTX for the lowest supported chip, and for a family that names more targets (`tensor.cu`, whose kernels multiply
//!   bf16 from capability 8.0 on) one for each, of which a device loads the highest that it supports. They are compiled by NVRTC
//!   12.9, so the oldest driver is one of CUDA 12.9. An image is split by entries, and each entry is loaded at its first launch:
//!   the driver compiles PTX slowly, and a program needs few of some two thousand;
//! - memory comes from a cache for each stream. A freed block is reused immediately on the same stream, since its work is in order,
//!   and on another one only after the device was waited for. Optionally its segments are ranges of addresses that grow in place
//!   (`memory/ranges.rs`);
//! - on request the library reports which of NVIDIA's libraries it found and what runs without the others, and its memory
//!   segments (`report.rs`); a call never depends on it;
//! - captured work is a CUDA graph (`capture.rs`). Memory that kernels allocate and free meanwhile comes from a pool exclusive to
//!   that graph; synchronisation with the captured stream is refused before the driver is called, so that the capture ends in
//!   order. A kernel that builds a table on the host, or divides integers, cannot be captured yet;
//! - an optimiser step is one launch for 88 tensors, whose addresses are in the kernel's parameter: no table is copied, so that
//!   the launch can be captured;
//! - kernels whose inputs may have invalid values (an integer division by 0, an index or a position out of range, a target that
//!   is not a class) check them first, and synchronise: the error is the call's. If work is captured, or with
//!   `KEYWAY_CUDA_INDEX_CHECKS=later`, the checks of indices are asynchronous (`checks.rs`): the kernel reads valid replacements,
//!   and the next synchronisation with the device returns the error, which names op, argument and value;
//! - writes and additions at indices process the sources of an output element in their order, by a stable sort of the indices:
//!   there are no atomic sums, and sums are bitwise identical to the CPU's. Sorts are one radix sort, except for short lines,
//!   which are sorted by counting;
//! - matrix products of f16, bf16, f32 and f64 run on cuBLASLt if it is installed (`blas/`), by functions that are resolved here
//!   like the driver's: `cudarc`'s safe layer always uses TF32 for f32, lacks f64, and creates descriptors for each call. f32,
//!   f16 and bf16 are accumulated in f32; transposed sides are flags, not copies. An algorithm is cached for each kind of product
//!   and reduces split-k partial sums from a workspace; by NVIDIA's documentation results are then bitwise identical on every
//!   run. Of cuBLAS only the `Lt` library is used: it has no state that streams share. If it is missing, that is logged once and
//!   own kernels run; a failed call of it is an error;
//! - convolutions of f16, bf16 and f32 run on cuDNN if it is installed (`dnn/`), by accurate and deterministic engines;
//! - otherwise products and convolutions are one tiled kernel (`kernels/tile.cuh`) on CUDA cores. Few results with a long
//!   reduction dimension are split over blocks by sizes alone (split-k), and the partial sums are added in order;
//! - for f16, and for bf16 from capability 8.0 on, the same products use tensor cores (`kernels/tensor_tile.cuh`), accumulated in
//!   f32, if m, n and k are at least 8. Products and convolutions of f32 do so, as TF32, if the program allows rounded factors
//!   (`Gpu::rounds`), which each call queries from the host; cuBLASLt has the same permission. The instructions are wrapped in
//!   functions of a few lines (`kernels/tensor.cuh`), which the emulator replaces;
//! - attention stores no scores (`kernels/attention.cu`, and on tensor cores `kernels/attention_cores.cuh`): queries iterate over
//!   tiles of the keys, and gradients recompute the scores, that of the query in blocks over queries, those of key and value in
//!   blocks over keys, so that no sum needs an atomic. Head dimensions above 256 and dropout use the decomposition. On tensor
//!   cores a weight is the sum of two values of the operands' dtype, half again as many products for the precision of f32. On
//!   chips of capability 9.0 the forward pass without a mask uses warpgroup products (`kernels/attention_groups.cuh`), whose
//!   image, of `compute_90a`, no other chip loads, and whose blocks use more shared memory than the default maximum;
//! - COO tensors (`sparse_coo`) have kernels here, so that no other library is needed for them on this device. Duplicates are
//!   found by a sort and added up by one thread each, in their order; a product by rows has a thread for each element of its
//!   result. Both are as slow as their longest duplicate run or row. The host synchronises where indices are checked and where a
//!   count determines a size;
//! - pooling and interpolation are sums and maxima by tables, which the host builds for each call, and their gradients use the
//!   transposed tables: each thread writes its own element, so no sum needs an atomic.
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
