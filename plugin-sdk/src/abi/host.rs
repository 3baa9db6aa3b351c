//! Services of the host for plugins.

use super::RawStr;
use super::op::{RawOutput, RawPlan};
use super::tensor::RawArg;
use std::ffi::c_void;

/// The body of a [`HostApi::parallel_for`]: processes `begin..end`.
pub type ParallelBody = unsafe extern "C" fn(context: *mut c_void, begin: u64, end: u64);

/// An owned reference to a tensor of the host. Zero is no tensor.
pub type TensorHandle = *const c_void;

/// The services of the host, passed to a plugin once, before any other function is called.
#[repr(C)]
#[derive(Debug)]
pub struct HostApi {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// The ABI version that was negotiated.
    pub abi_version: u32,
    /// Writes one line to the host's log.
    pub log: unsafe extern "C" fn(level: u32, message: RawStr),
    /// Sets the message of the status that this thread is about to return.
    pub set_error: unsafe extern "C" fn(message: RawStr),
    /// Runs `body` over `0..n` on the host's thread pool, in chunks of at least `grain` (the last may be shorter). Returns
    /// when all chunks have finished. The chunks depend on the number of threads, so a kernel whose result must not depend
    /// on it splits its own work and uses one index per work item.
    pub parallel_for:
        unsafe extern "C" fn(n: u64, grain: u64, body: Option<ParallelBody>, context: *mut c_void) -> i32,
    /// The current number of threads of `parallel_for`.
    pub num_threads: extern "C" fn() -> u32,
    /// Interns a name: returns the host's number of it; `kind` from [`codes::name_kind`](super::codes::name_kind). Returns
    /// `u16::MAX` if the table of names is full. Available during `initialize`, like `log` and `set_error`; the other
    /// services after it has returned.
    pub intern: unsafe extern "C" fn(kind: u32, name: RawStr) -> u16,
    /// Allocates `bytes` on a device through the plugin that provides it; for scratch memory inside a kernel, which frees
    /// it before it returns. `owner` receives the allocating plugin, since another plugin may provide the device by the
    /// time the memory is freed.
    pub allocate: unsafe extern "C" fn(
        device: u16,
        index: u16,
        bytes: u64,
        out: *mut *mut c_void,
        owner: *mut *const c_void,
    ) -> i32,
    /// Frees memory of `allocate`, after the work already submitted to this thread's stream; with the `owner` that it
    /// returned, and the same `device`, `index` and `bytes`.
    pub free:
        unsafe extern "C" fn(owner: *const c_void, device: u16, index: u16, pointer: *mut c_void, bytes: u64),
    /// Creates a strided tensor with undefined elements. `format` is one of
    /// [`codes::memory_format`](super::codes::memory_format); `strides` are `ndim` strides for `STRIDES`, with a distinct
    /// offset for each element, and ignored otherwise. The caller owns `out`.
    pub tensor_new: unsafe extern "C" fn(
        dtype: u16,
        device: u16,
        index: u16,
        ndim: u32,
        sizes: *const i64,
        format: u32,
        strides: *const i64,
        out: *mut TensorHandle,
    ) -> i32,
    /// Creates a tensor of a composite layout from components (borrowed, all on one device) and attributes, in the number
    /// that the layout declares.
    pub tensor_composite: unsafe extern "C" fn(
        layout: u16,
        dtype: u16,
        ndim: u32,
        sizes: *const i64,
        n_components: u32,
        components: *const TensorHandle,
        n_attrs: u32,
        attrs: *const i64,
        out: *mut TensorHandle,
    ) -> i32,
    /// The raw form of a tensor; valid until the handle is released.
    pub tensor_raw: unsafe extern "C" fn(tensor: TensorHandle) -> *const super::tensor::RawTensor,
    /// Releases an owned handle.
    pub tensor_release: unsafe extern "C" fn(tensor: TensorHandle),
    /// Sets `tensor` as output `index` of the call with this `context`. Takes ownership of the handle, also on failure. An
    /// argument of the call may be its output: the caller then receives a distinct tensor that shares the memory.
    pub set_output: unsafe extern "C" fn(context: *mut c_void, index: u32, tensor: TensorHandle) -> i32,
    /// Calls the functional form of another op by name through the whole dispatcher, on this thread and its streams; there
    /// is no form that writes to given tensors. Tensor arguments must have a handle. `n_outputs` receives the number of
    /// outputs, `outputs` the first `capacity` of them as owned handles; the host releases the others.
    pub call_op: unsafe extern "C" fn(
        name: RawStr,
        n_args: u32,
        args: *const RawArg,
        capacity: u32,
        outputs: *mut TensorHandle,
        n_outputs: *mut u32,
    ) -> i32,
    /// For a shape rule: describes output `index` of the call with this `context`.
    pub rule_output: unsafe extern "C" fn(context: *mut c_void, index: u32, output: *const RawOutput) -> i32,
    /// Returns an owned handle of a tensor that a call passed, for use as a component or an output; zero for a temporary,
    /// which has no handle.
    pub tensor_retain: unsafe extern "C" fn(tensor: *const super::tensor::RawTensor) -> TensorHandle,
    /// For a shape rule: describes how the outputs of the call with this `context` are computed. Without it the compute
    /// dtype is that of the first tensor, and the kernel receives the arguments unchanged.
    pub rule_plan: unsafe extern "C" fn(context: *mut c_void, plan: *const RawPlan) -> i32,
    /// Looks up data that is cached with the memory of a strided `tensor`, which has a handle. `key` is unique to the
    /// caller: the address of a static of its library. A value is found only if it was stored for a tensor of the same
    /// address, sizes, strides and dtype, on the same stream, and the memory has not been changed since. `out` receives an
    /// owned handle, zero if there is none, and `version` the memory's version, for `cache_put`.
    pub cache_get: unsafe extern "C" fn(
        tensor: *const super::tensor::RawTensor,
        key: u64,
        version: *mut u32,
        out: *mut TensorHandle,
    ) -> i32,
    /// Caches `value` (borrowed) for `cache_get`, until the memory of `tensor` is freed, its version changes, or newer values
    /// evict it. `version` is the result of `cache_get` before the value was computed; a value of an older version is not
    /// cached. A value that uses the memory of `tensor` itself is refused. Foreign memory that its owner writes to does not
    /// change its version: data derived from it would be out of date.
    pub cache_put: unsafe extern "C" fn(
        tensor: *const super::tensor::RawTensor,
        key: u64,
        version: u32,
        value: TensorHandle,
    ) -> i32,
    /// Returns the name of an interned number; `kind` as in `intern`. The text lives as long as the process. If two plugins
    /// provide one device, that of the second is named `device@plugin`, with memory of its own and another number.
    pub name: unsafe extern "C" fn(kind: u32, number: u16, out: *mut RawStr) -> i32,
    /// The program's value of one of [`codes::setting`](super::codes::setting): a kernel reads it in each call that depends
    /// on it, since it may change between calls.
    pub setting: unsafe extern "C" fn(which: u32) -> u32,
    /// As `tensor_composite`, with attributes of any type that the layout declares: ints, floats, bools, strings, lists of
    /// ints and of floats, which the host copies.
    pub tensor_composite_of: unsafe extern "C" fn(
        layout: u16,
        dtype: u16,
        ndim: u32,
        sizes: *const i64,
        n_components: u32,
        components: *const TensorHandle,
        n_attrs: u32,
        attrs: *const RawArg,
        out: *mut TensorHandle,
    ) -> i32,
    /// Returns attribute `index` of a composite `tensor`, which has a handle, in its declared type. An address in `out` is
    /// valid as long as the tensor is.
    pub tensor_attr:
        unsafe extern "C" fn(tensor: *const super::tensor::RawTensor, index: u32, out: *mut RawArg) -> i32,
}
