//! The further interfaces of a device as traits, and the tables made of them. Experimental, see
//! [`crate::abi::extension`].

use super::device::{Device, entry, give};
use super::error::Error;
use super::guard::guarded;
use crate::abi::device::Queue;
use crate::abi::extension::{CaptureApi, PeerApi};

/// Devices that reach each other's memory directly. Named by [`Device::PEER`].
pub trait Peer: Device {
    /// Whether device `index` can reach the memory of `peer`.
    fn can_access(index: u32, peer: u32) -> Result<bool, Error>;
    /// Lets device `index` reach the memory of `peer`; does nothing where it is so already.
    fn enable(index: u32, peer: u32) -> Result<(), Error>;
    /// Takes that back; does nothing where it is not so.
    fn disable(index: u32, peer: u32) -> Result<(), Error>;
}

/// The table for `const PEER: Option<&'static PeerApi> = Some(&peer_api::<Self>());`.
pub const fn peer_api<D: Peer>() -> PeerApi {
    PeerApi {
        struct_size: size_of::<PeerApi>() as u32,
        reserved: 0,
        can_access: entry!(@for Peer, D; index: u32, peer: u32 => out: u32; D::can_access(index, peer).map(u32::from)),
        enable: entry!(@for Peer, D; index: u32, peer: u32; D::enable(index, peer)),
        disable: entry!(@for Peer, D; index: u32, peer: u32; D::disable(index, peer)),
    }
}

/// Work that is recorded once and launched many times. Named by [`Device::CAPTURE`].
///
/// Streams and graphs are those that this device knows, as for [`Device`].
#[allow(clippy::missing_safety_doc)]
pub trait Capture: Device {
    /// From now on, work given to `stream` is recorded and not done.
    unsafe fn begin(index: u32, stream: Queue) -> Result<(), Error>;
    /// Ends the recording and gives the graph.
    unsafe fn end(index: u32, stream: Queue) -> Result<Queue, Error>;
    /// Gives the recorded work to `stream`.
    unsafe fn launch(index: u32, graph: Queue, stream: Queue) -> Result<(), Error>;
    /// Destroys a graph; launches under way are still carried out.
    unsafe fn destroy(index: u32, graph: Queue) -> Result<(), Error>;
}

/// The table for `const CAPTURE: Option<&'static CaptureApi> = Some(&capture_api::<Self>());`.
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
