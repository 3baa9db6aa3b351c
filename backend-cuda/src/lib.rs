//! Keyway's kernels for NVIDIA's GPUs, a plugin: the device `cuda`.
//!
//! The library is one file. It links nothing of NVIDIA's: the driver is opened when the device is first asked for, and the
//! kernels lie in the library as compressed images. **Nothing of it has run on a GPU yet**; it is tested on a stand-in for
//! the driver (`test-plugins/cuda-driver`), which runs the same kernel sources on the processor.
//!
//! Decisions:
//! - the driver's functions are resolved here, once, from `libcuda.so.1` (`driver/library.rs`), and `cudarc` gives the
//!   types: its own loader takes a toolkit's stub library first, takes no path, and panics where a function is missing;
//! - the safe layer of `cudarc` is not used: it records events that the host orders itself, and hands the errors of what
//!   is dropped to the next unrelated call;
//! - the `.cu` files in `kernels/` are the one list of kernels. Each has lines that say op, signature, host function and
//!   dtypes; the build script makes registrations of them, the C++ preprocessor entries;
//! - images are PTX of the lowest chip that is served, compiled by NVRTC 12.9, so the oldest driver is one of CUDA 12.9.
//!   An image is taken apart by entries, and each entry is loaded when it is first launched: the driver compiles PTX
//!   slowly, and a program needs few of some two thousand;
//! - memory comes from a cache for each stream. A block that is freed serves the same stream at once, since its work is
//!   in order, and never another one before the device was waited for;
//! - captured work is a graph of the driver's (`capture.rs`). Memory that kernels take and give back meanwhile is a pool of that
//!   graph's own; what waits for the captured stream is refused before the driver is asked, so that the capture ends in order.
//!   A kernel that looks at its inputs first, or makes a table on the host, cannot be captured yet;
//! - a step of an optimiser is one launch for 88 tensors, whose addresses are in the kernel's argument: no table is copied, so
//!   that the launch can be captured;
//! - kernels whose inputs may be wrong in their values (a whole number divided by 0, an index or a place that is not there, a
//!   target that is no class) look first, and wait for the answer;
//! - what is written or added at indices takes the sources of a place in their order, by a stable sort of the places: there
//!   are no atomic sums, and sums have the bits of the CPU's. Sorts are one radix sort, which short lines replace by
//!   counting;
//! - products of matrices and convolutions are one tiled kernel (`kernels/tile.cuh`) on the chip's ordinary units, with f16
//!   and bf16 summed in f32; cuBLAS, cuDNN and tensor cores are not used yet. Few results of many terms are split over
//!   blocks by sizes alone, and the parts are added up in order;
//! - pooling and interpolation are sums and maxima by tables, which the host makes for each call, and their gradients are
//!   the same with the tables transposed: each thread writes its own element, so no sum needs an atomic.
#![deny(missing_docs)]

mod capture;
mod device;
mod driver;
mod gpu;
mod kernels;
mod memory;
mod modules;

keyway_sdk::plugin! {
    name: "keyway-cuda",
    version: env!("CARGO_PKG_VERSION"),
    description: "Kernels for NVIDIA's GPUs",
    devices: ["cuda"],
    layouts: ["strided"],
    setup: |contents| {
        contents.device(&device::API);
        Ok(())
    },
}
