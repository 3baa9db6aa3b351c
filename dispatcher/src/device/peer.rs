//! Direct access of one device to another's memory. **Experimental**: see `keyway_sdk::abi::extension`.

use super::{check, ensure, entry_of, extension};
use crate::base::error::{Error, Result};
use crate::base::key::Device;
use keyway_sdk::abi::extension::PeerApi;

/// The interface, if both are devices of one type that has it.
fn interface(
    device: Device,
    peer: Device,
) -> Result<Option<(&'static super::DeviceEntry, &'static PeerApi)>> {
    let entry = entry_of(device)?;
    ensure(entry, device)?;
    let other = entry_of(peer)?;
    ensure(other, peer)?;
    if !entry.is_same_table(other) || device == peer {
        return Ok(None);
    }
    Ok(extension::find::<PeerApi>(entry)?.map(|api| (entry, api)))
}

fn interface_or_error(
    op: &'static str,
    device: Device,
    peer: Device,
) -> Result<(&'static super::DeviceEntry, &'static PeerApi)> {
    interface(device, peer)?.ok_or_else(|| Error::Value {
        op,
        argument: "peer",
        expected: format!(
            "another device of a kind that offers direct access, as {device} does not or is not"
        ),
        got: peer.to_string(),
    })
}

/// Whether `device` can reach the memory of `peer` directly. Devices of different kinds cannot, nor devices of a kind
/// without peer access.
///
/// # Errors
/// `NoDevice`, `NoSuchDevice`, `Backend`.
pub fn can_access(device: Device, peer: Device) -> Result<bool> {
    let Some((entry, api)) = interface(device, peer)? else { return Ok(false) };
    let mut out = 0;
    // SAFETY: the function writes one u32.
    let code = unsafe { (api.can_access)(u32::from(device.index), u32::from(peer.index), &mut out) };
    check(entry, device, "can_access", code)?;
    Ok(out != 0)
}

/// Enables access of `device` to the memory of `peer`, so that copies between them are direct. No effect if it is enabled.
///
/// # Errors
/// As [`can_access`]; `Value` if there is no direct access.
pub fn enable(device: Device, peer: Device) -> Result<()> {
    let (entry, api) = interface_or_error("peer::enable", device, peer)?;
    // SAFETY: the function takes integers only.
    let code = unsafe { (api.enable)(u32::from(device.index), u32::from(peer.index)) };
    check(entry, device, "peer::enable", code)
}

/// Disables the access. No effect if it is not enabled.
///
/// # Errors
/// As [`enable`].
pub fn disable(device: Device, peer: Device) -> Result<()> {
    let (entry, api) = interface_or_error("peer::disable", device, peer)?;
    // SAFETY: the function takes integers only.
    let code = unsafe { (api.disable)(u32::from(device.index), u32::from(peer.index)) };
    check(entry, device, "peer::disable", code)
}
