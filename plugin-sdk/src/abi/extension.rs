//! The interfaces that a device may lack, each with its own table.
//!
//! The host requests them with [`DeviceApi::extension`](super::device::DeviceApi::extension), since a plugin may define
//! several devices, and only some of them may have an interface. Ids are listed in
//! [`codes::interface`](super::codes::interface).
//!
//! **Experimental.** No plugin for real hardware has been written against these tables. A table that proves wrong is
//! removed, and its replacement gets another id; so a host and a plugin that know different versions merely lack the
//! interface.

use super::RawStr;
use super::device::Queue;
use std::ffi::c_void;

/// The interface [`codes::interface::PEER`](super::codes::interface::PEER): devices of one type with direct access to each
/// other's memory.
#[repr(C)]
#[derive(Debug)]
pub struct PeerApi {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Writes to `out` (0 or 1) whether device `index` can reach the memory of device `peer` directly.
    pub can_access: unsafe extern "C" fn(index: u32, peer: u32, out: *mut u32) -> i32,
    /// Enables access of device `index` to the memory of device `peer`, so that copies between them are direct. No effect
    /// if it is enabled.
    pub enable: unsafe extern "C" fn(index: u32, peer: u32) -> i32,
    /// Disables the access. No effect if it is not enabled.
    pub disable: unsafe extern "C" fn(index: u32, peer: u32) -> i32,
}

/// The interface [`codes::interface::CAPTURE`](super::codes::interface::CAPTURE): the work submitted to a stream is
/// captured once as a graph and launched many times.
///
/// The memory that captured work uses does not move, and the host keeps it alive as long as the graph. A function that
/// synchronizes with a stream, such as a blocking copy, is an error while the stream is being captured.
#[repr(C)]
#[derive(Debug)]
pub struct CaptureApi {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// From now on, work submitted to `stream`, which is not the default one, is captured instead of run.
    pub begin: unsafe extern "C" fn(index: u32, stream: Queue) -> i32,
    /// Ends the capture and returns the graph. If this fails there is no graph, and the stream is in its previous state.
    pub end: unsafe extern "C" fn(index: u32, stream: Queue, out: *mut Queue) -> i32,
    /// Launches the recorded work on `stream`, any of the device's.
    pub launch: unsafe extern "C" fn(index: u32, graph: Queue, stream: Queue) -> i32,
    /// Destroys a graph. Running launches still complete.
    pub destroy: unsafe extern "C" fn(index: u32, graph: Queue) -> i32,
}

/// A callback that receives a text with its name, with the `context` passed along with it; both are copied before it
/// returns.
pub type TakeText = unsafe extern "C" fn(context: *mut c_void, name: RawStr, text: RawStr);

/// The interface [`codes::interface::REPORT`](super::codes::interface::REPORT): facts about a device, for users and
/// diagnostic tools. Programs must not depend on them.
#[repr(C)]
#[derive(Debug)]
pub struct ReportApi {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Reports the facts of this type of device, present or not, in display order: the system libraries found, the search
    /// path, the features without a missing library. A name is a word or two.
    pub facts: unsafe extern "C" fn(take: Option<TakeText>, context: *mut c_void) -> i32,
    /// Reports a snapshot of the device's allocator as one JSON text, named `memory`: an object with `allocator`, a string,
    /// and `segments`, a list of allocations from the system. A segment has `address`, `total_size`, `allocated_size`,
    /// `segment_type`, `is_expandable` and `blocks`; a block has `address`, `size`, `requested_size`, `state` (`allocated`
    /// or `free`) and `owner`, a string that is equal for blocks of the same stream or graph. Further fields may be
    /// present. `UNSUPPORTED` if the device has no snapshot.
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
