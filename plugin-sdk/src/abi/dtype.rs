//! The interface of a dtype.

use super::RawStr;
use std::ffi::c_void;

/// Converts `n` elements of a dtype to f64. Both arrays are contiguous host memory, each aligned to its own element type,
/// and do not overlap. Returns a status; never unwinds. May be called from several threads concurrently.
pub type ToF64Fn = unsafe extern "C" fn(source: *const c_void, target: *mut f64, n: u64) -> i32;
/// Converts `n` elements from f64, otherwise as [`ToF64Fn`].
pub type FromF64Fn = unsafe extern "C" fn(source: *const f64, target: *mut c_void, n: u64) -> i32;
/// Formats one element: writes at most `capacity` bytes of UTF-8 to `buffer`, and their number to `length`. Returns a
/// status; never unwinds. May be called from several threads concurrently.
pub type FormatFn =
    unsafe extern "C" fn(element: *const c_void, buffer: *mut u8, capacity: u64, length: *mut u64) -> i32;

/// An element type that a plugin defines.
///
/// The host stores, moves, saves and prints tensors of it, promotes it by `promotes_to`, and casts it if no kernel does,
/// through f64: so an integer is exact up to 2^53. Every other op needs kernels for it.
///
/// Several plugins may describe one dtype if the descriptions are equal in all fields except the functions.
#[repr(C)]
#[derive(Debug)]
pub struct DTypeApi {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Storage bits of one element: 8 to [`MAX_BITS`], a multiple of 8. Elements that share a byte are not supported.
    pub bits: u32,
    /// The dtype's name, without spaces, commas and quotes: `vendor.example/fp8_e4m3`. Names of built-in dtypes are
    /// refused.
    pub name: RawStr,
    /// Alignment of an element in bytes: a power of two that divides the size of an element.
    pub alignment: u32,
    /// See [`codes::dtype_category`](super::codes::dtype_category).
    pub category: u32,
    /// Zero; the host refuses any other value.
    pub flags: u64,
    /// The built-in dtype that replaces this one in a promotion with any other; it must have the same category or a later
    /// one. Empty: this dtype promotes only with itself and with scalars.
    pub promotes_to: RawStr,
    /// The largest finite value; NaN if `category` is `OTHER`.
    pub max: f64,
    /// The lowest finite value; NaN if `category` is `OTHER`.
    pub min: f64,
    /// The distance from 1 to the next larger value; NaN for a category that is neither `FLOAT` nor `COMPLEX`.
    pub epsilon: f64,
    /// Widens to f64, exactly if possible; a complex number to its real part.
    pub to_f64: ToF64Fn,
    /// Rounds to nearest, ties to even. The plugin documents the results for values out of range and NaN.
    pub from_f64: FromF64Fn,
    /// Formats one element; if `None`, the result of `to_f64` is printed.
    pub format: Option<FormatFn>,
}

/// The maximum number of storage bits of an element.
pub const MAX_BITS: u32 = 128;
/// The capacity of the buffer that the host passes to [`DTypeApi::format`].
pub const FORMAT_CAPACITY: usize = 128;

// SAFETY: the table holds function pointers and static strings, all immutable; the plugin keeps them alive.
unsafe impl Send for DTypeApi {}
// SAFETY: as for Send.
unsafe impl Sync for DTypeApi {}
