//! Names and sizes of dtypes by their codes.

use crate::abi::codes::dtype;
use std::sync::atomic::{AtomicU8, Ordering};

/// The name of a dtype code, for messages.
pub fn dtype_name(code: u16) -> &'static str {
    match code {
        dtype::BOOL => "bool",
        dtype::U8 => "u8",
        dtype::I8 => "i8",
        dtype::I16 => "i16",
        dtype::I32 => "i32",
        dtype::I64 => "i64",
        dtype::F16 => "f16",
        dtype::BF16 => "bf16",
        dtype::F32 => "f32",
        dtype::F64 => "f64",
        dtype::U16 => "u16",
        dtype::U32 => "u32",
        dtype::U64 => "u64",
        dtype::C64 => "c64",
        dtype::C128 => "c128",
        _ => "a dtype of a plugin",
    }
}

/// The size of one element in bytes, or `None` for a plugin-defined dtype.
pub const fn dtype_size(code: u16) -> Option<usize> {
    Some(match code {
        dtype::BOOL | dtype::U8 | dtype::I8 => 1,
        dtype::I16 | dtype::U16 | dtype::F16 | dtype::BF16 => 2,
        dtype::I32 | dtype::U32 | dtype::F32 => 4,
        dtype::I64 | dtype::U64 | dtype::F64 | dtype::C64 => 8,
        dtype::C128 => 16,
        _ => return None,
    })
}

/// The maximum number of plugin dtypes whose sizes are cached.
const KEPT: usize = 96;

/// Sizes of the dtypes that this library has an [`Element`](super::Element) for; 0 if unknown.
static OWN_SIZES: [AtomicU8; KEPT] = [const { AtomicU8::new(0) }; KEPT];

/// The cached size of a plugin's dtype.
pub(super) fn own_size(code: u16) -> Option<&'static AtomicU8> {
    OWN_SIZES.get(usize::from(code.checked_sub(dtype::VENDOR_FIRST)?))
}

/// The size of one element in bytes, or `None` for a dtype without an [`Element`](super::Element) type in this library.
pub(crate) fn known_size(code: u16) -> Option<usize> {
    dtype_size(code).or_else(|| match own_size(code)?.load(Ordering::Relaxed) {
        0 => None,
        size => Some(size.into()),
    })
}
