//! Device types and the plugins that provide them.

use crate::base::error::Result;
use crate::base::intern::DEVICES;
use crate::base::key::Device;
use crate::base::lacking;
use crate::base::plugin::PluginEntry;
use keyway_sdk::abi::codes::device_flag;
use keyway_sdk::abi::device::DeviceApi;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// A device type and the plugin that provides it.
#[derive(Debug)]
pub struct DeviceEntry {
    /// Interned name.
    pub kind: u16,
    /// The device's functions.
    pub api: &'static DeviceApi,
    /// The plugin.
    pub plugin: &'static PluginEntry,
}

impl DeviceEntry {
    /// Whether both are one plugin's table. A plugin's device has two entries if the host calls it `name@plugin` as well.
    #[inline]
    pub(crate) fn is_same_table(&self, other: &DeviceEntry) -> bool {
        std::ptr::eq(self.api, other.api)
    }

    /// Whether the host may read the device's memory.
    #[inline]
    pub fn host_accessible(&self) -> bool {
        self.api.flags & device_flag::HOST_ACCESSIBLE != 0
    }
}

static SERVERS: [AtomicPtr<DeviceEntry>; crate::base::intern::MAX_DEVICES] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; crate::base::intern::MAX_DEVICES];

/// The plugin that currently provides a device type.
#[inline(always)]
pub fn server(kind: u16) -> Option<&'static DeviceEntry> {
    let entry = SERVERS.get(kind as usize)?.load(Ordering::Acquire);
    // SAFETY: the pointer is null or points to an entry that lives as long as the process, see `set_server`.
    unsafe { entry.as_ref() }
}

/// Whether tensors can be on a device type: a plugin provides it, or it is host memory, which needs no plugin.
pub fn is_there(kind: u16) -> bool {
    kind == Device::CPU.kind || server(kind).is_some()
}

/// Sets the plugin that provides a device type.
pub(crate) fn set_server(kind: u16, entry: Option<&'static DeviceEntry>) {
    if let Some(slot) = SERVERS.get(kind as usize) {
        lacking::set_device(DEVICES.name(kind), entry.is_some());
        slot.store(
            entry.map_or(std::ptr::null_mut(), |e| std::ptr::from_ref(e).cast_mut()),
            Ordering::Release,
        );
    }
}

/// A bit for each device of a type that has allocated memory; devices above the last bit share it.
static USED: [AtomicU64; crate::base::intern::MAX_DEVICES] =
    [const { AtomicU64::new(0) }; crate::base::intern::MAX_DEVICES];

fn bit(device: Device) -> u64 {
    1 << device.index.min(63)
}

/// The device recorded last, so that a program that uses one device needs one comparison.
static LAST_USED: AtomicU32 = AtomicU32::new(u32::MAX);

/// Records an allocation on a device. At the first one, checks that the device exists: a plugin is never called with an
/// index beyond its count.
///
/// # Errors
/// `NoSuchDevice`.
#[inline(always)]
pub(crate) fn note_use(entry: &'static DeviceEntry, device: Device) -> Result<()> {
    let number = u32::from(device.kind) << 16 | u32::from(device.index);
    if LAST_USED.load(Ordering::Relaxed) == number { Ok(()) } else { note_other_use(entry, device, number) }
}

#[cold]
fn note_other_use(entry: &'static DeviceEntry, device: Device, number: u32) -> Result<()> {
    // Devices from index 63 share a bit.
    if device.index >= 63 || !was_used(device) {
        super::ensure(entry, device)?;
    }
    if let Some(slot) = USED.get(device.kind as usize) {
        slot.fetch_or(bit(device), Ordering::Relaxed);
        LAST_USED.store(number, Ordering::Relaxed);
    }
    Ok(())
}

/// As [`was_used`], for any device of a type.
pub fn kind_was_used(kind: u16) -> bool {
    USED.get(kind as usize).is_some_and(|slot| slot.load(Ordering::Relaxed) != 0)
}

/// Whether the program has allocated memory on this device. Reports skip other devices: querying an unused device may
/// initialise it, which is slow or fails.
#[inline]
pub fn was_used(device: Device) -> bool {
    USED.get(device.kind as usize).is_some_and(|slot| slot.load(Ordering::Relaxed) & bit(device) != 0)
}
