//! Times of ops in memory formats and layouts, as a plugin declares them for planning.

use super::RawStr;

/// The time of one op on one device in one memory format or layout, relative to its time in row-major order. Planning
/// without measurements uses it; dispatch ignores it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawPreference {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// The op's name. The plugin must have a kernel of the op for this format on this device.
    pub op: RawStr,
    /// Device name.
    pub device: RawStr,
    /// The format: `channels_last`, or the name of a layout. Row-major order (`contiguous`, `strided`) is the reference;
    /// a declaration for it has no effect.
    pub format: RawStr,
    /// The op's time in this format, without conversions, over its time in row-major order: 0.6 for 40 % less time, 1.5 for
    /// 50 % more. From 0.001 to 1000; a declaration with another cost has no effect.
    pub cost: f64,
}

// SAFETY: static strings and a number, all immutable; the plugin retains them.
unsafe impl Send for RawPreference {}
// SAFETY: as for Send.
unsafe impl Sync for RawPreference {}
