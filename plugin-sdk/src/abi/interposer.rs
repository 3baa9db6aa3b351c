//! Interposers: code of a plugin between the caller of an op and the candidate that serves it.

use super::RawStr;
use super::host::TensorHandle;
use super::tensor::{RawArg, RawCall, RawTensor};
use std::ffi::c_void;

/// A running call, as passed to an interposer. The functions take `context` and may be called on this thread until `run`
/// returns; each returns a status, and an invalid use fails the call even if the interposer continues.
#[repr(C)]
#[derive(Debug)]
pub struct RawInterposed {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// See [`codes::interposed_flag`](super::codes::interposed_flag).
    pub flags: u32,
    /// The nesting depth: the number of calls of other ops that contain this one; 0 for a call of the program itself, 1 for
    /// one that a decomposition, a conversion of arguments or a plugin made on behalf of such a call.
    pub depth: u32,
    /// The number of outputs in the schema; `u32::MAX` if it depends on the arguments.
    pub n_outputs: u32,
    /// The op's name.
    pub op: RawStr,
    /// The arguments as the caller passed them, without outputs.
    pub call: *const RawCall,
    /// The host's state of this call, for the functions below.
    pub context: *mut c_void,
    /// Replaces argument `index`, before `next`, by another value of the kind in the schema; a tensor must have a handle.
    /// Argument 0 of an in-place call cannot be replaced.
    pub set_argument: unsafe extern "C" fn(context: *mut c_void, index: u32, arg: *const RawArg) -> i32,
    /// Runs the remaining handlers and the call itself, at most once, and writes the number of its outputs to `n_outputs`.
    pub next: unsafe extern "C" fn(context: *mut c_void, n_outputs: *mut u32) -> i32,
    /// Output `index` after `next`; null before it and out of range. Valid until `run` returns.
    pub output: unsafe extern "C" fn(context: *mut c_void, index: u32) -> *const RawTensor,
    /// Sets `tensor` as output `index`. Takes ownership of the handle, also on failure. After `next` it must have the
    /// shape, dtype and device of the output that it replaces; if `next` is not called, every output must be set. In an
    /// in-place or `out=` call its elements are copied to the caller's tensor.
    pub set_output: unsafe extern "C" fn(context: *mut c_void, index: u32, tensor: TensorHandle) -> i32,
}

/// An interposer: runs before and after each call of the ops that it lists, above autograd and below the profiler.
///
/// While `run` works, the interposer is disabled on its thread, so that ops that it calls itself do not reach it; during
/// `next` it is enabled.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawInterposer {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// See [`codes::interposer_flag`](super::codes::interposer_flag).
    pub flags: u32,
    /// The name by which a thread enables and disables it; unique in a process.
    pub name: RawStr,
    /// `n_ops` names of ops, in which `*` matches any text; calls of other ops have no overhead.
    pub ops: *const RawStr,
    /// Number of names; 0 for every op.
    pub n_ops: u32,
    /// The interposer with the higher order runs first and so encloses the other; at equal orders the one that was loaded
    /// first.
    pub order: i32,
    /// Called for each call of these ops. Returns a status; never unwinds.
    pub run: unsafe extern "C" fn(call: *const RawInterposed) -> i32,
}

// SAFETY: function pointer and static strings, all immutable; the plugin keeps them alive.
unsafe impl Send for RawInterposer {}
// SAFETY: as for Send.
unsafe impl Sync for RawInterposer {}
