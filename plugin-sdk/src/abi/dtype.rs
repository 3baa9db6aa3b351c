//! The interface of a dtype.

use super::RawStr;
use std::ffi::c_void;

/// Converts `n` elements between a dtype and f64. Both lists are in host memory, without gaps, each aligned to its own
/// element type, and do not overlap. Returns a status; never unwinds. May be called from several threads at once.
pub type ToF64Fn = unsafe extern "C" fn(source: *const c_void, target: *mut f64, n: u64) -> i32;
/// As [`ToF64Fn`], the other way.
pub type FromF64Fn = unsafe extern "C" fn(source: *const f64, target: *mut c_void, n: u64) -> i32;
/// Prints one element: at most `capacity` bytes of UTF-8 to `buffer`, their number to `length`. Returns a status;
/// never unwinds. May be called from several threads at once.
pub type FormatFn =
    unsafe extern "C" fn(element: *const c_void, buffer: *mut u8, capacity: u64, length: *mut u64) -> i32;

/// An element type that a plugin brings.
///
/// The host stores, moves, saves and prints tensors of it, promotes it by `promotes_to`, and casts it where no
/// kernel does, through f64: so an integer is exact up to 2^53. Every other op needs kernels for it.
///
/// Several plugins may describe one dtype, if they do so alike: all but the functions must be equal.
#[repr(C)]
#[derive(Debug)]
pub struct DTypeApi {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Storage bits of one element: 8 to [`MAX_BITS`], a multiple of 8. Elements that share a byte are not supported.
    pub bits: u32,
    /// The dtype's name, without spaces, commas and quotes: `vendor.example/fp8_e4m3`. Not that of a built-in dtype.
    pub name: RawStr,
    /// Alignment of an element in bytes: a power of two that divides the size of an element.
    pub alignment: u32,
    /// See [`codes::dtype_category`](super::codes::dtype_category).
    pub category: u32,
    /// Zero; the host refuses another number.
    pub flags: u64,
    /// The built-in dtype that replaces this one in a promotion with any other; of the same category or a later
    /// one. Empty: this one promotes only with itself and with scalars.
    pub promotes_to: RawStr,
    /// The largest finite value; NaN if `category` is `OTHER`.
    pub max: f64,
    /// The lowest finite value; NaN if `category` is `OTHER`.
    pub min: f64,
    /// The distance from 1 to the next larger value; NaN for a category that is neither `FLOAT` nor `COMPLEX`.
    pub epsilon: f64,
    /// Widens, exactly where f64 can; of a complex number the real part.
    pub to_f64: ToF64Fn,
    /// Rounds to nearest, ties to even. The plugin documents the results for values out of range and NaN.
    pub from_f64: FromF64Fn,
    /// Prints; `None` prints the result of `to_f64`.
    pub format: Option<FormatFn>,
}

/// The most storage bits of an element.
pub const MAX_BITS: u32 = 128;
/// The capacity of the buffer that the host passes to [`DTypeApi::format`].
pub const FORMAT_CAPACITY: usize = 128;

// SAFETY: the table holds function pointers and static strings, all immutable; the plugin keeps them.
unsafe impl Send for DTypeApi {}
// SAFETY: as for Send.
unsafe impl Sync for DTypeApi {}
