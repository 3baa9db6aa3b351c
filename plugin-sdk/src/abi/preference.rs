//! Times of ops in memory formats and layouts, as a plugin declares them for planning.

use super::RawStr;

/// The time of one op on one device in one memory format or layout, relative to its time in row-major order. A program that
/// plans without measurements uses it; calls are dispatched as if it were absent.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawPreference {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// The op's name. The plugin has a kernel of it that serves this format on this device.
    pub op: RawStr,
    /// Device name.
    pub device: RawStr,
    /// The format: `channels_last`, or the name of a layout. Row-major order (`contiguous`, `strided`) is what all others are
    /// relative to, and is refused here.
    pub format: RawStr,
    /// The op's time in this format, without conversions, over its time in row-major order: 0.6 for 40 % less time, 1.5 for
    /// half as much again. Finite and above 0.
    pub cost: f64,
}

// SAFETY: static strings and a number, all immutable; the plugin retains them.
unsafe impl Send for RawPreference {}
// SAFETY: as for Send.
unsafe impl Sync for RawPreference {}
