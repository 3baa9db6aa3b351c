//! Reading and filling in the tables of the other side of the boundary.
//!
//! The two sides may have been built years apart, so each knows tables of its own size. A reader uses the fields that both
//! know and treats the others as absent; a writer does not write beyond the reader's memory.

use std::mem::MaybeUninit;

/// One field of a structure of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field's name.
    pub name: &'static str,
    /// The field's offset in bytes from the start of the structure.
    pub offset: usize,
    /// The field's size in bytes.
    pub size: usize,
}

/// The memory layout of a structure of the contract, for tests and for tools in other languages.
#[derive(Clone, Copy, Debug)]
pub struct Structure {
    /// The name of its Rust type.
    pub name: &'static str,
    /// The structure's size in bytes.
    pub size: usize,
    /// The fields, in order.
    pub fields: &'static [Field],
}

/// A structure that begins with its own size, `struct_size`, and grows at its end.
///
/// # Safety
/// The type is `repr(C)` and begins with `struct_size: u32`; `FIELDS` are all of its fields in order; `MIN_SIZE` is at most
/// its size; a field that ends beyond `MIN_SIZE` may be zero bytes (an `Option` of a function, a pointer, an integer). The
/// macro in `sizes.rs` is the only implementor and checks all but the last.
pub unsafe trait Table: Sized {
    /// The size that every version of the contract has: fields within it are always present. It never changes.
    const MIN_SIZE: usize;
    /// The fields, in order.
    const FIELDS: &'static [Field];
}

/// The end of the last field that is completely within the first `size` bytes.
pub const fn whole_fields<T: Table>(size: usize) -> usize {
    let mut end = 0;
    let mut i = 0;
    while i < T::FIELDS.len() {
        let field = T::FIELDS[i];
        if field.offset + field.size <= size {
            end = field.offset + field.size;
        }
        i += 1;
    }
    end
}

/// The size in the first field of a table of the other side.
///
/// # Safety
/// `table` must be aligned and point to at least a `u32`; the side that passes the table upholds this.
pub unsafe fn stated_size<T: Table>(table: *const T) -> usize {
    // SAFETY: every table begins with its size, per this function's contract.
    unsafe { table.cast::<u32>().read() as usize }
}

/// A complete table of this side, from one that may be shorter or longer: the fields that both sides know are copied, the
/// others are those of `absent`.
///
/// # Safety
/// `theirs` must be aligned and readable for the size in its first field; the side that passes the table upholds this.
pub unsafe fn complete<T: Table>(theirs: *const T, absent: MaybeUninit<T>) -> MaybeUninit<T> {
    let mut own = absent;
    // SAFETY: the bytes are within both structures: within theirs, as its size field states, and within ours, whose fields they
    // are.
    unsafe {
        let size = whole_fields::<T>(stated_size(theirs));
        std::ptr::copy_nonoverlapping(theirs.cast::<u8>(), own.as_mut_ptr().cast::<u8>(), size);
    }
    own
}

/// Writes the fields of `value` that fit the reader's structure, with their size in the first field. Returns that size.
///
/// # Safety
/// `out` must be aligned, contain its size, and be writable for that many bytes; the side that reads it upholds this.
pub unsafe fn fill<T: Table>(out: *mut T, value: &T) -> usize {
    // SAFETY: the bytes are within both structures, as their size fields state; both begin with a u32 that is their size.
    unsafe {
        let size = whole_fields::<T>(stated_size(out));
        if size > 0 {
            std::ptr::copy_nonoverlapping(std::ptr::from_ref(value).cast::<u8>(), out.cast::<u8>(), size);
            out.cast::<u32>().write(size as u32);
        }
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::RawStr;
    use crate::abi::device::{RawDeviceProperties, RawMemoryStats};

    const UNTOUCHED: u8 = 0x55;

    fn properties() -> RawDeviceProperties {
        RawDeviceProperties { struct_size: 40, units: 2, total_memory: 7, flags: 1, name: RawStr::new("n") }
    }

    #[test]
    fn half_a_field_is_no_field() {
        let ends: Vec<usize> =
            [0, 3, 4, 15, 16, 39, 40, 4000].map(whole_fields::<RawDeviceProperties>).into();
        assert_eq!(ends, [0, 0, 4, 8, 16, 24, 40, 40]);
    }

    #[test]
    fn nothing_is_written_beyond_the_readers_memory() {
        for size in 0..=64usize {
            // Exactly the memory that the reader states, so that a memory checker detects each byte beyond it.
            let mut memory = vec![u64::from_ne_bytes([UNTOUCHED; 8]); size.div_ceil(8).max(1)];
            let out: *mut RawDeviceProperties = memory.as_mut_ptr().cast();
            // SAFETY: the memory is aligned and as large as its size field, and at least a u32.
            let written = unsafe {
                out.cast::<u32>().write(size as u32);
                fill(out, &properties())
            };
            assert_eq!(written, whole_fields::<RawDeviceProperties>(size));
            let bytes: Vec<u8> = memory.iter().flat_map(|word| word.to_ne_bytes()).collect();
            assert!(bytes[written.max(4)..].iter().all(|byte| *byte == UNTOUCHED), "{size}");
        }
    }

    #[test]
    fn a_shorter_table_is_completed_and_a_longer_one_is_cut() {
        let absent = RawMemoryStats { struct_size: 72, limit: 9, ..RawMemoryStats::default() };
        let mut short = [0u64; 3];
        short[0] = 24;
        short[1] = 5;
        short[2] = 6;
        // SAFETY: the memory is as large as its size field, and every value of it is one of the type.
        let whole = unsafe { complete(short.as_ptr().cast(), MaybeUninit::new(absent)).assume_init() };
        assert_eq!((whole.struct_size, whole.in_use, whole.held, whole.limit), (24, 5, 6, 9));
        let mut long = [3u64; 12];
        long[0] = 96;
        // SAFETY: as above.
        let whole = unsafe { complete(long.as_ptr().cast(), MaybeUninit::new(absent)).assume_init() };
        assert_eq!((whole.struct_size, whole.in_use, whole.limit), (96, 3, 3));
    }
}
