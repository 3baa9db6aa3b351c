//! The interface of a device.
//!
//! A device orders its own work: all work submitted to one stream runs in order, and streams are ordered by events only;
//! the default stream (null) is like any other. Code that uses a tensor on another stream than the one it was created on
//! must order the two; the host only ensures that memory is freed after the work of every stream that used it.
//!
//! On an asynchronous device a kernel enqueues its work and returns. It copies the inputs that the work needs later: the
//! call's structures, and the values of `HOST_SCALAR` arguments, live until the kernel returns; device memory lives until
//! the work submitted to the stream has finished. The device saves an error of queued work and returns it once, from the
//! next function that synchronizes: `copy_to_host` or a synchronizing one.
//!
//! Random numbers need no state here: the host holds (seed, offset) per device and passes both to the kernels, so that
//! every backend draws the same Philox stream.

use super::RawStr;
use std::ffi::c_void;

/// A stream, an event or a graph of the plugin. Null is the default stream.
///
/// A stream is the handle of the device's native programming interface (a `CUstream` on CUDA), not a structure of the
/// plugin around it: the host passes it to other libraries unchanged, and passes their streams to the functions of the
/// table. The plugin must not require that it created a stream itself.
pub type Queue = *mut c_void;

/// Properties of one device.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawDeviceProperties {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Processing units: cores, multiprocessors.
    pub units: u32,
    /// Bytes of memory in all; 0 if unknown.
    pub total_memory: u64,
    /// See [`codes::device_flag`](super::codes::device_flag).
    pub flags: u64,
    /// The device's display name; static or valid for the life of the process.
    pub name: RawStr,
}

/// Memory statistics of one device, in bytes and counts since start.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RawMemoryStats {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Bytes of allocated memory.
    pub in_use: u64,
    /// Bytes reserved from the system: in use or cached.
    pub held: u64,
    /// Highest `in_use` since start or reset.
    pub peak_in_use: u64,
    /// Highest `held` since start or reset.
    pub peak_held: u64,
    /// The number of allocations so far.
    pub allocations: u64,
    /// The number of frees so far.
    pub frees: u64,
    /// Allocations served from the cache.
    pub cache_hits: u64,
    /// The maximum number of bytes in use; 0 if unlimited.
    pub limit: u64,
}

/// The functions of one device type. Those up to `copy_between` are required.
#[repr(C)]
#[derive(Debug)]
pub struct DeviceApi {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// If two plugins provide one device, the one with the higher priority is used; 100 is usual.
    pub priority: u32,
    /// The device's name: `cpu`, or `vendor.example/npu`.
    pub name: RawStr,
    /// See [`codes::device_flag`](super::codes::device_flag).
    pub flags: u64,
    /// Number of devices present; 0 with a reason in `set_error` if there are none.
    pub count: unsafe extern "C" fn(out: *mut u32) -> i32,
    /// Writes the properties of one device. The host sets `out.struct_size` to the size that it knows; no more than that is
    /// written. This holds for every structure that a function fills in.
    pub properties: unsafe extern "C" fn(index: u32, out: *mut RawDeviceProperties) -> i32,
    /// Allocates `bytes` with at least 64-byte alignment, usable on `stream`.
    pub allocate: unsafe extern "C" fn(index: u32, bytes: u64, stream: Queue, out: *mut *mut c_void) -> i32,
    /// Frees memory of `allocate` after the work already submitted to `stream`, the stream that `allocate` was called with.
    pub free: unsafe extern "C" fn(index: u32, pointer: *mut c_void, bytes: u64, stream: Queue) -> i32,
    /// Copies host memory to the device; `source` may be reused when the call returns.
    pub copy_from_host: unsafe extern "C" fn(
        index: u32,
        target: *mut c_void,
        source: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> i32,
    /// Copies device memory to the host after the work already submitted to `stream`; blocks until the copy has finished.
    pub copy_to_host: unsafe extern "C" fn(
        index: u32,
        target: *mut c_void,
        source: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> i32,
    /// Copies between two devices of this type, or within one; the ranges do not overlap. `target_stream` belongs to the
    /// target's device, `source_stream` to the source's: the copy runs after the work already submitted to both, and later
    /// work of both runs after the copy.
    pub copy_between: unsafe extern "C" fn(
        target_index: u32,
        target: *mut c_void,
        target_stream: Queue,
        source_index: u32,
        source: *const c_void,
        source_stream: Queue,
        bytes: u64,
    ) -> i32,
    /// Creates a stream; a synchronous device has none and leaves this and the following functions as `None`.
    pub stream_create: Option<unsafe extern "C" fn(index: u32, out: *mut Queue) -> i32>,
    /// Destroys a stream after its work.
    pub stream_destroy: Option<unsafe extern "C" fn(index: u32, stream: Queue) -> i32>,
    /// Waits for all work of a stream.
    pub stream_synchronize: Option<unsafe extern "C" fn(index: u32, stream: Queue) -> i32>,
    /// Creates an event.
    pub event_create: Option<unsafe extern "C" fn(index: u32, out: *mut Queue) -> i32>,
    /// Destroys an event.
    pub event_destroy: Option<unsafe extern "C" fn(index: u32, event: Queue) -> i32>,
    /// Marks a point in a stream.
    pub event_record: Option<unsafe extern "C" fn(index: u32, event: Queue, stream: Queue) -> i32>,
    /// Makes a stream wait for the work that an event has recorded. `index` is the stream's device; the event may belong to
    /// another device of this type.
    pub event_wait: Option<unsafe extern "C" fn(index: u32, event: Queue, stream: Queue) -> i32>,
    /// Writes to `done` (0 or 1) whether an event has happened.
    pub event_query: Option<unsafe extern "C" fn(index: u32, event: Queue, done: *mut u32) -> i32>,
    /// Waits for an event.
    pub event_synchronize: Option<unsafe extern "C" fn(index: u32, event: Queue) -> i32>,
    /// Nanoseconds between two events.
    pub event_elapsed:
        Option<unsafe extern "C" fn(index: u32, from: Queue, to: Queue, nanoseconds: *mut u64) -> i32>,
    /// Waits for all work of a device.
    pub synchronize: Option<unsafe extern "C" fn(index: u32) -> i32>,
    /// Fills in the memory statistics.
    pub memory_stats: Option<unsafe extern "C" fn(index: u32, out: *mut RawMemoryStats) -> i32>,
    /// Releases cached memory to the system.
    pub empty_cache: Option<unsafe extern "C" fn(index: u32) -> i32>,
    /// Resets the peaks in the statistics.
    pub reset_peak: Option<unsafe extern "C" fn(index: u32) -> i32>,
    /// Limits the bytes in use; 0 lifts the limit.
    pub set_memory_limit: Option<unsafe extern "C" fn(index: u32, bytes: u64) -> i32>,
    /// Allocates `bytes` of page-locked ("pinned") host memory with at least 64-byte alignment: ordinary memory for the
    /// host, and the fastest source and target of copies for all devices of this type. The host caches freed blocks, so
    /// this may be slow. Requires `pinned_free`.
    pub pinned_allocate: Option<unsafe extern "C" fn(index: u32, bytes: u64, out: *mut *mut c_void) -> i32>,
    /// Frees memory of `pinned_allocate`. The host guarantees that no running copy uses it.
    pub pinned_free: Option<unsafe extern "C" fn(index: u32, pointer: *mut c_void, bytes: u64) -> i32>,
    /// Enqueues a copy from pinned host memory to the device on `stream` and returns. The source must neither change nor be
    /// freed until the work submitted to `stream` so far has finished; the host records an event there. Requires the pinned
    /// memory and the events; without it, copies block.
    pub copy_from_host_async: Option<
        unsafe extern "C" fn(
            index: u32,
            target: *mut c_void,
            source: *const c_void,
            bytes: u64,
            stream: Queue,
        ) -> i32,
    >,
    /// Enqueues a copy from the device to pinned host memory on `stream` and returns. The target's contents are valid once
    /// the work submitted to `stream` so far has finished; otherwise as `copy_from_host_async`.
    pub copy_to_host_async: Option<
        unsafe extern "C" fn(
            index: u32,
            target: *mut c_void,
            source: *const c_void,
            bytes: u64,
            stream: Queue,
        ) -> i32,
    >,
    /// Returns the table of an optional interface of this device, see [`extension`](super::extension), at `version` of the
    /// ABI; null if it has none. The table is valid for the life of the process.
    pub extension: Option<unsafe extern "C" fn(interface: u32, version: u32) -> *const c_void>,
}

// SAFETY: the table holds function pointers and static strings, all immutable; the plugin keeps them alive.
unsafe impl Send for DeviceApi {}
// SAFETY: as for Send.
unsafe impl Sync for DeviceApi {}
