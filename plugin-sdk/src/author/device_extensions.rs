//! The optional interfaces of a device as traits, and the ABI tables built from them. Experimental, see
//! [`crate::abi::extension`].

use super::device::{Device, entry, give, lacks};
use super::error::Error;
use super::guard::guarded;
use crate::abi::RawStr;
use crate::abi::device::Queue;
use crate::abi::extension::{CaptureApi, PeerApi, ReportApi, TakeText};
use std::ffi::c_void;

/// Devices with direct access to each other's memory. Enabled by [`Device::PEER`].
pub trait Peer: Device {
    /// Whether device `index` can reach the memory of `peer`.
    fn can_access(index: u32, peer: u32) -> Result<bool, Error>;
    /// Enables access of device `index` to the memory of `peer`; no effect if it is enabled.
    fn enable(index: u32, peer: u32) -> Result<(), Error>;
    /// Disables the access; no effect if it is not enabled.
    fn disable(index: u32, peer: u32) -> Result<(), Error>;
}

/// Builds the table for `const PEER: Option<&'static PeerApi> = Some(&peer_api::<Self>());`.
pub const fn peer_api<D: Peer>() -> PeerApi {
    PeerApi {
        struct_size: size_of::<PeerApi>() as u32,
        reserved: 0,
        can_access: entry!(@for Peer, D; index: u32, peer: u32 => out: u32; D::can_access(index, peer).map(u32::from)),
        enable: entry!(@for Peer, D; index: u32, peer: u32; D::enable(index, peer)),
        disable: entry!(@for Peer, D; index: u32, peer: u32; D::disable(index, peer)),
    }
}

/// Stream capture: work that is captured once and launched many times. Enabled by [`Device::CAPTURE`].
///
/// Streams and graphs were returned by this device, as for [`Device`].
#[allow(clippy::missing_safety_doc)]
pub trait Capture: Device {
    /// From now on, work submitted to `stream` is captured instead of run.
    unsafe fn begin(index: u32, stream: Queue) -> Result<(), Error>;
    /// Ends the capture and returns the graph.
    unsafe fn end(index: u32, stream: Queue) -> Result<Queue, Error>;
    /// Launches the captured work on `stream`.
    unsafe fn launch(index: u32, graph: Queue, stream: Queue) -> Result<(), Error>;
    /// Destroys a graph; running launches still complete.
    unsafe fn destroy(index: u32, graph: Queue) -> Result<(), Error>;
}

/// Builds the table for `const CAPTURE: Option<&'static CaptureApi> = Some(&capture_api::<Self>());`.
pub const fn capture_api<D: Capture>() -> CaptureApi {
    CaptureApi {
        struct_size: size_of::<CaptureApi>() as u32,
        reserved: 0,
        begin: entry!(@for Capture, D; index: u32, stream: Queue; D::begin(index, stream)),
        end: entry!(@for Capture, D; index: u32, stream: Queue => out: Queue; D::end(index, stream)),
        launch: entry!(@for Capture, D; index: u32, graph: Queue, stream: Queue; D::launch(index, graph, stream)),
        destroy: entry!(@for Capture, D; index: u32, graph: Queue; D::destroy(index, graph)),
    }
}

/// The report of a device about itself, for users and for tools that display it. Set as [`Device::REPORT`].
pub trait Report: Device {
    /// The facts of this type of device, present or not, each with a name of a word or two: the system libraries that were
    /// found, the folders that were searched, the features without a missing library.
    fn facts() -> Vec<(&'static str, String)>;
    /// The segments and blocks of a device's memory, as JSON of the form that [`ReportApi`] describes.
    fn memory(index: u32) -> Result<String, Error> {
        let _ = index;
        Err(lacks("an account of memory"))
    }
}

/// Passes a text to the host.
///
/// # Safety
/// `take` may be called with `context`; the host upholds this.
unsafe fn tell(take: Option<TakeText>, context: *mut c_void, name: &str, text: &str) -> Result<(), Error> {
    let take = take.ok_or_else(|| Error::InvalidArgument {
        argument: "take",
        expected: "a function".into(),
        got: "null".into(),
    })?;
    // SAFETY: the caller's; both texts live until the call returns.
    unsafe { take(context, RawStr::borrow(name), RawStr::borrow(text)) };
    Ok(())
}

/// Builds the table for `const REPORT: Option<&'static ReportApi> = Some(&report_api::<Self>());`.
pub const fn report_api<D: Report>() -> ReportApi {
    ReportApi {
        struct_size: size_of::<ReportApi>() as u32,
        reserved: 0,
        facts: entry!(@for Report, D; take: Option<TakeText>, context: *mut c_void; {
            D::facts().iter().try_for_each(|(name, text)| tell(take, context, name, text))
        }),
        memory: entry!(@for Report, D; index: u32, take: Option<TakeText>, context: *mut c_void;
            tell(take, context, "memory", &D::memory(index)?)),
    }
}
