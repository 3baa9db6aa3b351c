//! The binary contract, `repr(C)` only.
//!
//! Rules that keep a plugin loading for years:
//! - a table begins with `struct_size`; a reader looks at a field only if it lies within that size, so
//!   tables grow at their end and never change in place;
//! - enumerations cross as integers (`codes`), never as Rust enums;
//! - arrays of structures that may grow are arrays of pointers;
//! - memory is freed by the side that allocated it; strings are copied by the reader at once;
//! - every function returns a status from [`codes`], and the message goes to
//!   [`HostApi::set_error`](host::HostApi) before the return.

pub mod codes;
pub mod device;
pub mod dtype;
pub mod host;
pub mod interposer;
pub mod layout;
pub mod manifest;
pub mod op;
pub mod plugin;
pub mod tensor;

/// The lowest ABI version that this SDK can speak.
pub const ABI_MIN: u32 = 1;
/// The highest ABI version that this SDK can speak.
pub const ABI_MAX: u32 = 1;

/// A borrowed UTF-8 string.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawStr {
    /// First byte; may be dangling if `len` is 0.
    pub ptr: *const u8,
    /// Length in bytes.
    pub len: usize,
}

// SAFETY: a RawStr is a pointer to immutable bytes; whoever shares one keeps the bytes alive and unchanged.
unsafe impl Send for RawStr {}
// SAFETY: as for Send.
unsafe impl Sync for RawStr {}

impl RawStr {
    /// The empty string.
    pub const EMPTY: RawStr = RawStr { ptr: std::ptr::null(), len: 0 };

    /// Borrows a static string.
    pub const fn new(s: &'static str) -> RawStr {
        RawStr { ptr: s.as_ptr(), len: s.len() }
    }

    /// Borrows any string; the caller keeps it alive while the other side reads.
    pub const fn borrow(s: &str) -> RawStr {
        RawStr { ptr: s.as_ptr(), len: s.len() }
    }

    /// Reads the string, replacing what is not UTF-8.
    ///
    /// # Safety
    /// `ptr` must point to `len` readable bytes, which the other side of the ABI keeps unchanged for `'a`.
    pub unsafe fn read<'a>(self) -> std::borrow::Cow<'a, str> {
        if self.ptr.is_null() || self.len == 0 {
            return "".into();
        }
        // SAFETY: the caller guarantees `len` readable bytes at `ptr`.
        String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(self.ptr, self.len) })
    }
}
