//! The optional interfaces of a device, looked up and checked.

use super::{DeviceEntry, untrue};
use crate::base::error::Result;
use keyway_sdk::abi::ABI_MAX;
use keyway_sdk::abi::codes::interface;
use keyway_sdk::abi::extension::{CaptureApi, PeerApi, ReportApi};
use std::mem::offset_of;

/// A table that `DeviceApi::extension` returns.
pub(super) trait Extension: Sized + 'static {
    /// The id of the interface.
    const ID: u32;
    /// The interface's name in messages.
    const NAME: &'static str;
    /// The required functions, with their offsets in the table.
    const FUNCTIONS: &'static [(&'static str, usize)];
}

macro_rules! extension {
    ($type:ident, $id:ident, $name:literal, $($field:ident),+) => {
        impl Extension for $type {
            const ID: u32 = interface::$id;
            const NAME: &'static str = $name;
            const FUNCTIONS: &'static [(&'static str, usize)] =
                &[$((stringify!($field), offset_of!($type, $field))),+];
        }
    };
}
extension!(PeerApi, PEER, "extension(PEER)", can_access, enable, disable);
extension!(CaptureApi, CAPTURE, "extension(CAPTURE)", begin, end, launch, destroy);
extension!(ReportApi, REPORT, "extension(REPORT)", facts, memory);

/// An optional interface of a device; `None` if it has none.
pub(super) fn find<T: Extension>(entry: &'static DeviceEntry) -> Result<Option<&'static T>> {
    let Some(lookup) = entry.api.extension else { return Ok(None) };
    // SAFETY: the function takes integers only.
    let table: *const T = unsafe { lookup(T::ID, ABI_MAX) }.cast();
    if table.is_null() {
        return Ok(None);
    }
    if !table.is_aligned() {
        let got = format_args!("{:#x}", table.addr());
        return Err(untrue(entry, T::NAME, "the table", "at an aligned address", got));
    }
    // SAFETY: not null, aligned, and every table of the contract begins with its size as a u32.
    let size = unsafe { table.cast::<u32>().read() } as usize;
    if size < size_of::<T>() {
        let expected = format_args!("at least {}", size_of::<T>());
        return Err(untrue(entry, T::NAME, "struct_size", expected, size));
    }
    for (name, offset) in T::FUNCTIONS {
        // SAFETY: the offset is within the table, whose field there is one pointer wide.
        if unsafe { table.byte_add(*offset).cast::<usize>().read() } == 0 {
            return Err(untrue(entry, T::NAME, name, "a function", "a null pointer"));
        }
    }
    // SAFETY: the table is complete and aligned, its functions were checked not to be null, and the plugin keeps it alive
    // for the life of the process.
    Ok(Some(unsafe { &*table }))
}
