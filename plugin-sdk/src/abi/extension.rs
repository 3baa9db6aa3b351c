//! Further interfaces of a device, which not every device has, each a table of its own.
//!
//! The host asks [`DeviceApi::extension`](super::device::DeviceApi::extension) for them, since a plugin may bring
//! several devices, and only some of them may have an interface. An id is a number of
//! [`codes::interface`](super::codes::interface).
//!
//! **Experimental.** No plugin for real hardware has been written against these tables. A table that proves wrong goes,
//! and a better one gets another id; so a host and a plugin that know different ones merely lack the interface.

use super::RawStr;
use super::device::Queue;
use std::ffi::c_void;

/// The interface [`codes::interface::PEER`](super::codes::interface::PEER): devices of one type that reach each
/// other's memory directly.
#[repr(C)]
#[derive(Debug)]
pub struct PeerApi {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Writes to `out` (0 or 1) whether device `index` can reach the memory of device `peer` directly.
    pub can_access: unsafe extern "C" fn(index: u32, peer: u32, out: *mut u32) -> i32,
    /// Lets device `index` reach the memory of device `peer`, so that copies between them take the direct way. Does
    /// nothing where that is so already.
    pub enable: unsafe extern "C" fn(index: u32, peer: u32) -> i32,
    /// Takes that back. Does nothing where it is not enabled.
    pub disable: unsafe extern "C" fn(index: u32, peer: u32) -> i32,
}

/// The interface [`codes::interface::CAPTURE`](super::codes::interface::CAPTURE): the work given to a stream is
/// recorded once as a graph and launched many times.
///
/// The memory that captured work uses does not move, and the host keeps it alive as long as the graph. A function that
/// waits for the work of a stream, such as a blocking copy, is an error while it is captured.
#[repr(C)]
#[derive(Debug)]
pub struct CaptureApi {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// From now on, work given to `stream`, which is not the default one, is recorded and not done.
    pub begin: unsafe extern "C" fn(index: u32, stream: Queue) -> i32,
    /// Ends the recording and returns the graph. If this fails there is no graph, and the stream is as before.
    pub end: unsafe extern "C" fn(index: u32, stream: Queue, out: *mut Queue) -> i32,
    /// Launches the recorded work on `stream`, any of the device's.
    pub launch: unsafe extern "C" fn(index: u32, graph: Queue, stream: Queue) -> i32,
    /// Destroys a graph. Launches under way are still carried out.
    pub destroy: unsafe extern "C" fn(index: u32, graph: Queue) -> i32,
}

/// Takes a text with its name, for the `context` that came with this function; both are copied before it returns.
pub type TakeText = unsafe extern "C" fn(context: *mut c_void, name: RawStr, text: RawStr);

/// The interface [`codes::interface::REPORT`](super::codes::interface::REPORT): facts about a device, for people and
/// for tools that show them. Programs must not depend on them.
#[repr(C)]
#[derive(Debug)]
pub struct ReportApi {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Returns the facts of this type of device, present or not, in the order in which they are shown: which libraries of the
    /// system were found, the search path, what works without a missing one. A name is a word or two.
    pub facts: unsafe extern "C" fn(take: Option<TakeText>, context: *mut c_void) -> i32,
    /// Returns a snapshot of the device's allocator as one JSON text, named `memory`: an object with `allocator`, a word, and
    /// `segments`, a list of allocations from the system. A segment has `address`, `total_size`, `allocated_size`,
    /// `segment_type`, `is_expandable` and `blocks`; a block has `address`, `size`, `requested_size`, `state` (`allocated` or
    /// `free`) and `owner`, a text that is the same for blocks that serve the same stream or graph. There may be more.
    /// `UNSUPPORTED` where the device has no such snapshot.
    pub memory: unsafe extern "C" fn(index: u32, take: Option<TakeText>, context: *mut c_void) -> i32,
}

// SAFETY: the tables hold numbers and function pointers only.
unsafe impl Send for PeerApi {}
// SAFETY: as above.
unsafe impl Sync for PeerApi {}
// SAFETY: as above.
unsafe impl Send for CaptureApi {}
// SAFETY: as above.
unsafe impl Sync for CaptureApi {}
// SAFETY: as above.
unsafe impl Send for ReportApi {}
// SAFETY: as above.
unsafe impl Sync for ReportApi {}
