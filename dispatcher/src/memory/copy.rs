//! Copies of bytes between storages, on any devices.

use super::in_use::{InUse, Use};
use super::{Owner, Storage};
use crate::base::error::{Error, Result};
use crate::base::key::Device;
use crate::device::{self as device_abi, DeviceEntry};
use std::ptr::NonNull;

/// The device entry that copies a storage's bytes: the plugin that allocated the memory, otherwise the plugin that serves
/// its device; `None` if the host can read them itself.
fn entry(storage: &Storage) -> Result<Option<&'static DeviceEntry>> {
    let device = storage.device();
    let entry = match storage.0.owner {
        Owner::Device(entry) => Some(entry),
        _ => device_abi::server(device.kind),
    };
    match entry {
        Some(entry) if entry.host_accessible() => Ok(None),
        Some(entry) => Ok(Some(entry)),
        None if device == Device::CPU => Ok(None),
        None => Err(Error::NoDevice { device }),
    }
}

/// Refuses a range outside the storage. An empty range may start anywhere, as an empty view does.
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

/// Copies `bytes` bytes between two ranges, which must not overlap; blocks if the host is involved.
///
/// # Errors
/// `Value` for a range outside a storage; errors of the devices.
pub fn copy_bytes(
    target: &Storage,
    target_offset: usize,
    source: &Storage,
    source_offset: usize,
    bytes: usize,
) -> Result<()> {
    let Some((to, from)) = addresses(target, target_offset, source, source_offset, bytes)? else {
        return Ok(());
    };
    target.synchronize()?;
    source.synchronize()?;
    target.note_use();
    source.note_use();
    let _written = written("copy_bytes", target, target_offset, bytes)?;
    match (entry(target)?, entry(source)?) {
        (None, None) => {
            // SAFETY: both ranges are host memory of at least `bytes` bytes; `copy` allows overlap.
            unsafe { std::ptr::copy(from.as_ptr(), to.as_ptr(), bytes) };
            Ok(())
        }
        (Some(device), None) => device_abi::copy_from_host(device, target.device(), to, from, bytes),
        (None, Some(device)) => device_abi::copy_to_host(device, source.device(), to, from, bytes),
        (Some(a), Some(b)) if a.is_same_table(b) => {
            device_abi::copy_between(a, target.device(), to, source.device(), from, bytes)
        }
        (Some(_), Some(_)) => staged(target, target_offset, source, source_offset, bytes),
    }
}

/// Copies as [`copy_bytes`], but a copy between a device and its pinned host memory is enqueued on this thread's stream and
/// the call returns immediately. Until the stream has completed it (synchronise the stream or an event recorded after this,
/// or call [`Storage::synchronize`] of the host side) the source must not change, and the target's contents are not valid.
/// The functions of this module wait by themselves; a kernel that uses the host side does not. The pinned memory may be
/// dropped: it is reused only after the copy.
///
/// # Errors
/// As [`copy_bytes`].
pub fn copy_bytes_async(
    target: &Storage,
    target_offset: usize,
    source: &Storage,
    source_offset: usize,
    bytes: usize,
) -> Result<()> {
    let Some((to, from)) = addresses(target, target_offset, source, source_offset, bytes)? else {
        return Ok(());
    };
    let (far, near, entry) = match (entry(target)?, entry(source)?) {
        (Some(entry), None) => (target, source, entry),
        (None, Some(entry)) => (source, target, entry),
        _ => return copy_bytes(target, target_offset, source, source_offset, bytes),
    };
    let Some(block) = near.block().filter(|block| block.serves(entry) && device_abi::copies_async(entry))
    else {
        return copy_bytes(target, target_offset, source, source_offset, bytes);
    };
    let device = far.device();
    let stream = device_abi::current_stream_ref_of(entry, device);
    block.wait_for_others(device, &stream)?;
    far.note_use();
    let recorded = near.keep_if_recorded(&stream);
    let range = (to, from, bytes);
    let queued = match std::ptr::eq(far, target) {
        true => device_abi::copy_from_host_async(entry, device, range, &stream),
        false => device_abi::copy_to_host_async(entry, device, range, &stream),
    };
    // Also after a failure: the copy may have been enqueued nevertheless.
    let noted = if recorded { Ok(()) } else { block.note_copy(entry, device, &stream) };
    queued.and(noted)
}

/// Waits for ops of other threads that read the integers that are about to be written.
fn written(op: &'static str, target: &Storage, offset: usize, bytes: usize) -> Result<Option<Box<InUse>>> {
    let enter = || InUse::enter(op, &mut [target.access(offset..offset + bytes, Use::Write)]);
    target.holds_integers().then(enter).transpose()
}

/// The addresses of two checked ranges; `None` if there is nothing to copy.
fn addresses(
    target: &Storage,
    target_offset: usize,
    source: &Storage,
    source_offset: usize,
    bytes: usize,
) -> Result<Option<(NonNull<u8>, NonNull<u8>)>> {
    check(target, target_offset, bytes)?;
    check(source, source_offset, bytes)?;
    target.check_writable("copy_bytes")?;
    if bytes == 0 {
        return Ok(None);
    }
    // SAFETY: both ranges were checked to be within their storages, which live as long as the borrows.
    Ok(Some(unsafe { (target.pointer().add(target_offset), source.pointer().add(source_offset)) }))
}

/// The number of bytes of one step of a copy between devices of different kinds.
const STAGE: usize = 4 << 20;

/// Copies between devices of different kinds through the host: the upload of one chunk to the target overlaps the download
/// of the next from the source.
fn staged(
    target: &Storage,
    target_offset: usize,
    source: &Storage,
    source_offset: usize,
    bytes: usize,
) -> Result<()> {
    let stage = || Storage::allocate_pinned(source.device(), bytes.min(STAGE));
    let first = stage()?;
    let second = if bytes > STAGE { stage()? } else { first.clone() };
    let pieces = (0..bytes).step_by(STAGE).map(|start| (start, STAGE.min(bytes - start)));
    let down =
        |stage: &Storage, (start, size)| copy_bytes_async(stage, 0, source, source_offset + start, size);
    let mut stages = (&first, &second);
    let mut next = pieces.clone().skip(1);
    down(stages.0, (0, bytes.min(STAGE)))?;
    for (start, size) in pieces {
        if let Some(piece) = next.next() {
            down(stages.1, piece)?;
        }
        // Waits until the chunk is in host memory, and returns when it is copied to the target.
        copy_bytes(target, target_offset + start, stages.0, 0, size)?;
        stages = (stages.1, stages.0);
    }
    Ok(())
}

/// Reads a range into host memory and waits for the copy.
///
/// # Errors
/// As [`copy_bytes`].
pub fn read_bytes(source: &Storage, offset: usize, target: &mut [u8]) -> Result<()> {
    check(source, offset, target.len())?;
    if target.is_empty() {
        return Ok(());
    }
    source.synchronize()?;
    // SAFETY: the range was checked to be within the storage.
    let from = unsafe { source.pointer().add(offset) };
    // The pointer must be valid for the whole slice, not only its first byte.
    let (length, to) = (target.len(), NonNull::from(target).cast::<u8>());
    match entry(source)? {
        None => {
            // SAFETY: `from` is host memory of at least `length` bytes, `to` is the slice itself.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), length) };
            Ok(())
        }
        Some(device) => device_abi::copy_to_host(device, source.device(), to, from, length),
    }
}

/// Whether the host reads a storage's bytes itself.
pub(super) fn is_host(storage: &Storage) -> Result<bool> {
    Ok(entry(storage)?.is_none())
}

impl Storage {
    /// Copies elements with a stride of `step` bytes, the first at `offset`, into contiguous host memory. The storage
    /// must be host-readable and without pending work.
    pub(super) fn gather(&self, offset: usize, step: usize, to: &mut [u8], element: usize) -> Result<()> {
        let n = to.len() / element.max(1);
        if n == 0 {
            return Ok(());
        }
        let last = (n - 1).checked_mul(step).and_then(|span| span.checked_add(offset));
        check(self, last.unwrap_or(usize::MAX), element)?;
        // SAFETY: from the first byte of the first element to the last byte of the last, the range is within the storage, as
        // was just checked, and so within memory that the host reads; `to` has capacity for `n` elements.
        unsafe {
            let (from, to) = (self.pointer().as_ptr().cast_const().add(offset), to.as_mut_ptr());
            match element {
                _ if step == element => std::ptr::copy_nonoverlapping(from, to, n * element),
                1 => gather::<u8>(from, step, to, n),
                2 => gather::<u16>(from, step, to, n),
                4 => gather::<u32>(from, step, to, n),
                8 => gather::<u64>(from, step, to, n),
                _ => (0..n).for_each(|i| {
                    std::ptr::copy_nonoverlapping(from.add(i * step), to.add(i * element), element);
                }),
            }
        }
        Ok(())
    }
}

/// # Safety
/// `from` must be valid for reading `n` elements with stride `step` in bytes, and `to` for writing them.
/// [`Storage::gather`] upholds this.
unsafe fn gather<T>(from: *const u8, step: usize, to: *mut u8, n: usize) {
    for i in 0..n {
        // SAFETY: as the caller guarantees; no alignment is required.
        unsafe { to.cast::<T>().add(i).write_unaligned(from.add(i * step).cast::<T>().read_unaligned()) };
    }
}

/// Writes host memory into a range.
///
/// # Errors
/// As [`copy_bytes`].
pub fn write_bytes(target: &Storage, offset: usize, source: &[u8]) -> Result<()> {
    check(target, offset, source.len())?;
    target.check_writable("write_bytes")?;
    if source.is_empty() {
        return Ok(());
    }
    target.synchronize()?;
    target.note_use();
    let _written = written("write_bytes", target, offset, source.len())?;
    // SAFETY: the range was checked to be within the storage.
    let to = unsafe { target.pointer().add(offset) };
    let from = NonNull::from(source).cast::<u8>();
    match entry(target)? {
        None => {
            // SAFETY: `to` is host memory of at least `source.len()` bytes, `from` is the slice itself.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), source.len()) };
            Ok(())
        }
        Some(device) => device_abi::copy_from_host(device, target.device(), to, from, source.len()),
    }
}
