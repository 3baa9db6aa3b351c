//! The SDK for Keyway plugins.
//!
//! [`abi`] is the binary contract between host and plugin; [`author`] is the safe API on top of it; [`philox`] is the
//! random number generator that all backends share. A plugin is a `cdylib` crate that calls [`plugin!`] once and
//! [`register_kernel!`] for each kernel. Kernels that loop over host memory also use `keyway-cpu-loops`; those of a device
//! whose memory the host cannot read iterate with [`author::strided`].
//!
//! - **How to depend on the SDK**: it is not published to crates.io; depend on it by path or by git, at the revision of the
//!   Keyway that will load the plugin: `keyway-sdk = { git = "https://github.com/keyway-rs/keyway" }` or `keyway-sdk = {
//!   path = "../keyway/plugin-sdk" }`, and `keyway-cpu-loops` in the same way. No other crate of Keyway is needed.
//! - **Where to install the library**: `cargo build --release` writes `target/release/libNAME.so`; copy it into a folder of
//!   `keyway backend paths`, or try it without copying with `keyway --backends target/release backend list`. The folder and
//!   the library must not be writable by others, or they are refused.
//! - **What a panic does**: it never crosses the boundary. The call fails with the status
//!   [`PANICKED`](abi::codes::status::PANICKED) and the panic's message, and the plugin is poisoned: since its state may be
//!   inconsistent, every later call of any of its functions fails with that status, without running, until the process
//!   ends. So a kernel returns an [`Error`] for expected failures, and panics for its own bugs alone.
//!
//! Decisions:
//! - the only `abi_stable` type is the frozen root in `keyway-abi-root`; every type that may grow is a `repr(C)` table that
//!   begins with its size, because `abi_stable` refuses a plugin if a type grew;
//! - kernels are collected by `inventory` and registered as one array, so a kernel is one file and one registration,
//!   without a list to maintain;
//! - an output may be exactly one of the arguments (in-place calls), so views read and write through raw pointers, and
//!   a slice of an argument is available only if no output overlaps it, one of an output only if no argument does;
//!   `contiguous` of `keyway-cpu-loops` copies in the other cases;
//! - loops over host memory, and the copies that they need, are a separate crate: a plugin for a device whose memory the
//!   host cannot read does not compile them;
//! - device memory is viewed only on the CPU and on devices that this plugin declares host-accessible;
//! - `bool` memory is never borrowed as `&[bool]`, since another library may have written any byte;
//! - every exported function has a panic guard, because a panic in `extern "C"` aborts the process.

pub mod abi;
pub mod author;
pub mod gamma;
pub mod mills;
pub mod philox;
pub mod quantile;

// The unit tests share a file with `keyway-cpu-loops`, which refers to this crate by its name.
#[cfg(test)]
extern crate self as keyway_sdk;

pub use author::Error;
pub use half;
pub use num_complex;

#[doc(hidden)]
pub mod __private {
    pub use crate::abi::host::HostApi;
    pub use crate::abi::interposer::RawInterposer;
    pub use crate::abi::plugin::{EntryPoint, PluginApi, PluginContents};
    pub use crate::abi::preference::RawPreference;
    pub use crate::abi::tensor::{KernelFn, RawCall};
    pub use crate::abi::{ABI_MAX, ABI_MIN, RawStr, manifest};
    pub use crate::author::export::{
        ABI_MAX_TEXT, ABI_MIN_TEXT, SDK_VERSION, check_name, check_texts, digit_count, digits, get_interface,
        initialize, negotiate, no_setup, root_ref, run_kernel, sign, text,
    };
    pub use crate::author::interposer::{InterposerItem, raw_strs, table as interposer};
    pub use crate::author::kernel_items::KernelItems;
    pub use crate::author::preference::{PreferenceItem, table as preference};
    pub use inventory;
    pub use keyway_abi_root::{KeywayRoot, KeywayRootRef, abi_stable};
}
