//! The binary contract, `repr(C)` only.
//!
//! `include/keyway.h` is the same contract in C, generated from these files by `cargo xtask header`.
//!
//! # How the contract grows
//!
//! A plugin that was built once loads for years, into hosts that are older and newer than its SDK. For this purpose:
//!
//! - **A table begins with `struct_size`**, the size that its writer knows, and grows at its end only. A field never
//!   changes its offset, type or meaning; an unused field stays. `sizes.rs` lists every offset, and the compiler compares.
//! - **A table has a minimum size**, [`Table::MIN_SIZE`], a number that never changes. The fields within it are present in
//!   every version; a shorter table is refused. A field beyond it may be absent, so its type has a zero that means
//!   "absent": an `Option` of a function, a null pointer, the number 0, an empty text.
//! - **A reader never reads beyond the writer's `struct_size`, and no Rust reference is created to a structure that is
//!   shorter than its type.** When the host loads a plugin it copies a shorter table over zeroes, and the SDK copies a
//!   host's shorter table over services that return `UNSUPPORTED` ([`complete`](table::complete)); after that all code
//!   reads plain fields. A partial field counts as absent.
//! - **A structure that the other side fills in** (`PluginContents`, `RawDeviceProperties`, `RawMemoryStats`) contains the
//!   reader's size; the writer writes the fields that fit, and replaces the size by theirs ([`fill`](table::fill)).
//! - **Structures that each call reads are frozen**: [`RawTensor`](tensor::RawTensor), [`RawCall`](tensor::RawCall),
//!   [`RawArg`](tensor::RawArg), [`RawStr`]. If a later version appends to a tensor or a call, its `struct_size` shows it,
//!   the Rust type is unchanged, and code that needs more reads the larger structure by that size.
//! - **Arrays of structures that may grow are arrays of pointers.**
//! - **Enumerations cross as integers** ([`codes`]), never as Rust enums; an unknown code is a value, not an error of the
//!   program: each list states whether it is refused or ignored. Reserved fields are written as zero and not read.
//! - **Any other addition is a new interface**, with an id of its own in [`codes::interface`]; a change that sizes and
//!   interfaces cannot distinguish is a new ABI version, which both sides negotiate.
//!
//! To add a field: append it to its structure, with a type that may be zero; add its offset and the new size in `sizes.rs`;
//! do not change the minimum size; run `cargo xtask header`.
//!
//! # Ownership
//!
//! - Memory is freed by the side that allocated it; strings are copied by the reader immediately.
//! - Every function returns a status from [`codes`], and passes the message to [`HostApi::set_error`](host::HostApi) before
//!   it returns.

pub mod codes;
pub mod device;
pub mod dtype;
pub mod extension;
pub mod host;
pub mod interposer;
pub mod layout;
pub mod manifest;
pub mod op;
pub mod plugin;
pub mod preference;
mod sizes;
pub mod table;
pub mod tensor;

pub use sizes::STRUCTURES;
pub use table::Table;

/// The lowest ABI version that this SDK supports.
pub const ABI_MIN: u32 = 1;
/// The highest ABI version that this SDK supports.
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

// SAFETY: a RawStr is a pointer to immutable bytes; the code that shares one keeps the bytes alive and unchanged.
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

    /// Reads the string, replacing invalid UTF-8.
    ///
    /// # Safety
    /// `ptr` must point to `len` readable bytes, which the other side of the ABI does not change during `'a`.
    pub unsafe fn read<'a>(self) -> std::borrow::Cow<'a, str> {
        if self.ptr.is_null() || self.len == 0 {
            return "".into();
        }
        // SAFETY: the caller guarantees `len` readable bytes at `ptr`.
        String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(self.ptr, self.len) })
    }
}
