//! Bytes between storages, whatever devices they lie on.

use super::Storage;
use crate::base::error::{Error, Result};
use crate::base::key::Device;
use crate::device::{self as device_abi, DeviceEntry};

fn entry(device: Device) -> Result<Option<&'static DeviceEntry>> {
    match device_abi::server(device.kind) {
        Some(entry) if entry.host_accessible() => Ok(None),
        Some(entry) => Ok(Some(entry)),
        None if device == Device::CPU => Ok(None),
        None => Err(Error::NoDevice { device }),
    }
}

/// Refuses a range outside the storage. No bytes at all may begin anywhere, as those of an empty view do.
fn check(storage: &Storage, offset: usize, bytes: usize) -> Result<()> {
    match offset.checked_add(bytes) {
        _ if bytes == 0 => Ok(()),
        Some(end) if end <= storage.bytes() => Ok(()),
        _ => Err(Error::Value {
            op: "copy_bytes",
            argument: "range",
            expected: format!("within the storage's {} bytes", storage.bytes()),
            got: format!("{bytes} bytes from {offset} on"),
        }),
    }
}

/// Copies `bytes` bytes between two places, which must not overlap, waiting where the host is involved.
///
/// # Errors
/// `Value` for a range outside a storage; what the devices report.
pub fn copy_bytes(
    target: &Storage,
    target_offset: usize,
    source: &Storage,
    source_offset: usize,
    bytes: usize,
) -> Result<()> {
    check(target, target_offset, bytes)?;
    check(source, source_offset, bytes)?;
    if bytes == 0 {
        return Ok(());
    }
    target.note_use();
    source.note_use();
    // SAFETY: both ranges were checked to lie within their storages, which live as long as the borrows.
    let (to, from) = unsafe { (target.pointer().add(target_offset), source.pointer().add(source_offset)) };
    match (entry(target.device())?, entry(source.device())?) {
        (None, None) => {
            // SAFETY: both ranges are host memory of at least `bytes` bytes; `copy` allows overlap.
            unsafe { std::ptr::copy(from.as_ptr(), to.as_ptr(), bytes) };
            Ok(())
        }
        (Some(device), None) => device_abi::copy_from_host(device, target.device(), to, from, bytes),
        (None, Some(device)) => device_abi::copy_to_host(device, source.device(), to, from, bytes),
        (Some(a), Some(b)) if std::ptr::eq(a, b) => {
            device_abi::copy_between(a, target.device(), to, source.device(), from, bytes)
        }
        (Some(_), Some(_)) => {
            let mut staging = vec![0u8; bytes];
            read_bytes(source, source_offset, &mut staging)?;
            write_bytes(target, target_offset, &staging)
        }
    }
}

/// Reads a range into host memory, waiting until it is there.
///
/// # Errors
/// As [`copy_bytes`].
pub fn read_bytes(source: &Storage, offset: usize, target: &mut [u8]) -> Result<()> {
    check(source, offset, target.len())?;
    if target.is_empty() {
        return Ok(());
    }
    // SAFETY: the range was checked to lie within the storage.
    let from = unsafe { source.pointer().add(offset) };
    let to = std::ptr::NonNull::from(&mut target[0]);
    match entry(source.device())? {
        None => {
            // SAFETY: `from` is host memory of at least `target.len()` bytes, `to` is the slice itself.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), target.len()) };
            Ok(())
        }
        Some(device) => device_abi::copy_to_host(device, source.device(), to, from, target.len()),
    }
}

/// Writes host memory into a range.
///
/// # Errors
/// As [`copy_bytes`].
pub fn write_bytes(target: &Storage, offset: usize, source: &[u8]) -> Result<()> {
    check(target, offset, source.len())?;
    if source.is_empty() {
        return Ok(());
    }
    target.note_use();
    // SAFETY: the range was checked to lie within the storage.
    let to = unsafe { target.pointer().add(offset) };
    let from = std::ptr::NonNull::from(&source[0]);
    match entry(target.device())? {
        None => {
            // SAFETY: `to` is host memory of at least `source.len()` bytes, `from` is the slice itself.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), source.len()) };
            Ok(())
        }
        Some(device) => device_abi::copy_from_host(device, target.device(), to, from, source.len()),
    }
}
