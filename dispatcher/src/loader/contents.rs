//! Checks what a plugin handed over before anything of it is used.

use super::error::LoadError;
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::device::DeviceApi;
use keyway_sdk::abi::layout::{LayoutApi, LayoutOpsApi};
use keyway_sdk::abi::op::{RawInterposer, RawKernel, RawOp};
use keyway_sdk::abi::plugin::{PluginContents, RawList};
use std::mem::{offset_of, size_of};

/// More entries or longer names than this are taken for a table that was not filled in.
const MAX_ENTRIES: usize = 1 << 20;
const MAX_NAME: usize = 1 << 16;

/// A field that is checked before a reference to its structure is made: a null function pointer behind a
/// Rust reference is undefined behaviour.
enum Field {
    /// A function that must be there.
    Function(&'static str, usize),
    /// A name that must not be empty.
    Name(&'static str, usize),
    /// Text that may be empty.
    Text(&'static str, usize),
}

/// A structure that crosses the boundary behind a pointer.
trait Entry: 'static {
    /// The table's name in messages.
    const TABLE: &'static str;
    /// Size of the structure at the first ABI version: a plugin may know no more than this. When the
    /// structure grows, this stays.
    const MIN_SIZE: usize;
    /// What is checked.
    const FIELDS: &'static [Field];
}

macro_rules! entry {
    ($type:ident, $table:literal, $($kind:ident $field:ident),+) => {
        impl Entry for $type {
            const TABLE: &'static str = $table;
            const MIN_SIZE: usize = size_of::<$type>();
            const FIELDS: &'static [Field] = &[$(Field::$kind(stringify!($field), offset_of!($type, $field))),+];
        }
    };
}

entry!(
    DeviceApi, "devices",
    Name name, Function count, Function properties, Function allocate, Function free,
    Function copy_from_host, Function copy_to_host, Function copy_between
);
entry!(LayoutApi, "layouts", Name name);
entry!(LayoutOpsApi, "layout_ops", Name layout, Name device, Text shapes);
entry!(RawOp, "ops", Name schema, Text backward);
entry!(
    RawKernel, "kernels",
    Name op, Text signature, Name device, Name layout, Name dtype, Function run
);
entry!(RawInterposer, "interposers", Name name, Function run);

fn bad<T: Entry>(index: usize, expected: impl Into<String>, got: impl Into<String>) -> LoadError {
    LoadError::BadTable { table: T::TABLE, index, expected: expected.into(), got: got.into() }
}

/// # Safety
/// `at` must point to a readable `RawStr`, and its `len` bytes must be readable if the pointer is not null.
unsafe fn check_text(at: *const RawStr, name: &str, needed: bool) -> Result<(), (String, String)> {
    // SAFETY: the caller guarantees a readable RawStr; its fields accept every bit pattern.
    let text = unsafe { at.read() };
    if text.len > MAX_NAME {
        return Err((format!("`{name}` of at most {MAX_NAME} bytes"), format!("{} bytes", text.len)));
    }
    if text.len > 0 && text.ptr.is_null() {
        return Err((format!("`{name}` of {} bytes", text.len), "a null pointer".to_string()));
    }
    if text.len == 0 {
        return if needed { Err((format!("a `{name}`"), "an empty one".to_string())) } else { Ok(()) };
    }
    // SAFETY: not null, and the caller guarantees `len` readable bytes.
    match std::str::from_utf8(unsafe { std::slice::from_raw_parts(text.ptr, text.len) }) {
        Ok(_) => Ok(()),
        Err(e) => Err((format!("`{name}` in UTF-8"), e.to_string())),
    }
}

/// The text of an entry of [`Tables`].
pub(super) fn text(checked: RawStr) -> &'static str {
    if checked.len == 0 {
        return "";
    }
    // SAFETY: `check_text` read the same bytes; the plugin upholds that they stay for the life of the process.
    std::str::from_utf8(unsafe { std::slice::from_raw_parts(checked.ptr, checked.len) }).unwrap_or_default()
}

/// Checks a list and returns it as references.
///
/// # Safety
/// If `items` is not null it must point to `len` pointers, each of them null or pointing to a structure of
/// as many bytes as its first field says, valid for the life of the process. The plugin upholds this: the
/// host opens only libraries whose root has the contract's layout, and never unmaps them.
unsafe fn check_list<T: Entry>(list: &RawList<T>) -> Result<&'static [&'static T], LoadError> {
    if list.len == 0 {
        return Ok(&[]);
    }
    if list.len > MAX_ENTRIES {
        return Err(bad::<T>(0, format!("at most {MAX_ENTRIES} entries"), format!("{}", list.len)));
    }
    if list.items.is_null() || !list.items.is_aligned() {
        return Err(bad::<T>(
            0,
            format!("a list of {} entries", list.len),
            format!("the pointer {:p}", list.items),
        ));
    }
    // SAFETY: not null, aligned, and the caller guarantees `len` pointers.
    let pointers: &'static [*const T] = unsafe { std::slice::from_raw_parts(list.items, list.len) };
    for (index, &pointer) in pointers.iter().enumerate() {
        if pointer.is_null() || !pointer.is_aligned() {
            return Err(bad::<T>(index, "an entry", format!("the pointer {pointer:p}")));
        }
        // SAFETY: not null, aligned; every structure of the contract begins with its size as a u32.
        let size = unsafe { pointer.cast::<u32>().read() } as usize;
        if size < T::MIN_SIZE {
            return Err(bad::<T>(
                index,
                format!("a `struct_size` of at least {}", T::MIN_SIZE),
                format!("{size}"),
            ));
        }
        for field in T::FIELDS {
            let checked = match *field {
                Field::Function(name, offset) => {
                    // SAFETY: the offset lies within MIN_SIZE; the field is one pointer wide.
                    let function = unsafe { pointer.byte_add(offset).cast::<usize>().read() };
                    if function == 0 {
                        Err((format!("the function `{name}`"), "a null pointer".to_string()))
                    } else {
                        Ok(())
                    }
                }
                // SAFETY: the offset lies within MIN_SIZE and names a RawStr, whose bytes the plugin keeps.
                Field::Name(name, offset) => unsafe {
                    check_text(pointer.byte_add(offset).cast(), name, true)
                },
                // SAFETY: as above.
                Field::Text(name, offset) => unsafe {
                    check_text(pointer.byte_add(offset).cast(), name, false)
                },
            };
            checked.map_err(|(expected, got)| bad::<T>(index, expected, got))?;
        }
    }
    // SAFETY: every pointer was found not null, aligned and its structure valid; `&T` and `*const T` have one
    // layout; the caller guarantees that the structures live as long as the process.
    Ok(unsafe { std::slice::from_raw_parts(list.items.cast::<&'static T>(), list.len) })
}

/// What a plugin brings, checked: every entry is there, large enough, with its names and functions.
#[derive(Debug, Clone, Copy)]
pub struct Tables {
    /// Devices.
    pub devices: &'static [&'static DeviceApi],
    /// Layouts.
    pub layouts: &'static [&'static LayoutApi],
    /// New ops.
    pub ops: &'static [&'static RawOp],
    /// Kernels.
    pub kernels: &'static [&'static RawKernel],
    /// Interposers.
    pub interposers: &'static [&'static RawInterposer],
    /// Functions of layouts, for each device.
    pub layout_ops: &'static [&'static LayoutOpsApi],
}

/// Checks all that `initialize` wrote.
///
/// # Safety
/// Each list of `contents` must be as [`check_list`] says; the plugin upholds this.
pub(super) unsafe fn check(contents: &PluginContents) -> Result<Tables, LoadError> {
    // SAFETY: the caller guarantees the contract of each list.
    let tables = unsafe {
        Tables {
            devices: check_list(&contents.devices)?,
            layouts: check_list(&contents.layouts)?,
            ops: check_list(&contents.ops)?,
            kernels: check_list(&contents.kernels)?,
            interposers: check_list(&contents.interposers)?,
            layout_ops: check_list(&contents.layout_ops)?,
        }
    };
    for (index, layout) in tables.layouts.iter().enumerate() {
        let lists =
            [("components", layout.components, layout.n_components), ("attrs", layout.attrs, layout.n_attrs)];
        for (name, list, count) in lists {
            if count as usize > MAX_ENTRIES || (count > 0 && (list.is_null() || !list.is_aligned())) {
                return Err(bad::<LayoutApi>(
                    index,
                    format!("at most {MAX_ENTRIES} names in `{name}`, and a pointer to them"),
                    format!("{count} at the pointer {list:p}"),
                ));
            }
            for i in 0..count as usize {
                // SAFETY: `components` and `attrs` point to as many RawStr as their counts say; the plugin
                // upholds this.
                unsafe { check_text(list.add(i), name, true) }
                    .map_err(|(expected, got)| bad::<LayoutApi>(index, expected, got))?;
            }
        }
    }
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_sdk::abi::tensor::RawCall;

    unsafe extern "C" fn run(_call: *const RawCall) -> i32 {
        0
    }

    fn kernel() -> RawKernel {
        RawKernel {
            struct_size: size_of::<RawKernel>() as u32,
            flags: 0,
            op: RawStr::new("op"),
            signature: RawStr::EMPTY,
            device: RawStr::new("cpu"),
            layout: RawStr::new("strided"),
            dtype: RawStr::new("f32"),
            run,
        }
    }

    fn check_kernels(pointers: Vec<*const RawKernel>) -> Result<usize, String> {
        let pointers: &'static [*const RawKernel] = pointers.leak();
        let list = RawList { items: pointers.as_ptr(), len: pointers.len() };
        // SAFETY: the list points to `len` pointers, each null or to a leaked structure.
        unsafe { check_list(&list) }.map(<[_]>::len).map_err(|e| e.to_string())
    }

    fn leak(kernel: RawKernel) -> *const RawKernel {
        Box::leak(Box::new(kernel))
    }

    #[test]
    fn sound_entries_pass_and_later_larger_ones_too() {
        let larger = RawKernel { struct_size: 4096, ..kernel() };
        assert_eq!(check_kernels(vec![leak(kernel()), leak(larger)]), Ok(2));
        assert_eq!(check_kernels(vec![]), Ok(0));
    }

    #[test]
    fn unsound_entries_are_named() {
        let small = RawKernel { struct_size: 8, ..kernel() };
        let nameless = RawKernel { op: RawStr::EMPTY, ..kernel() };
        let null_name = RawKernel { dtype: RawStr { ptr: std::ptr::null(), len: 3 }, ..kernel() };
        let endless = RawKernel { op: RawStr { ptr: std::ptr::null(), len: usize::MAX }, ..kernel() };
        static NOT_UTF8: [u8; 2] = [0xff, 0xfe];
        let garbled = RawKernel { layout: RawStr { ptr: NOT_UTF8.as_ptr(), len: 2 }, ..kernel() };
        let cases = [
            (leak(small), "`struct_size`"),
            (leak(nameless), "a `op`"),
            (leak(null_name), "`dtype` of 3 bytes"),
            (leak(endless), "`op` of at most"),
            (leak(garbled), "`layout` in UTF-8"),
            (std::ptr::null(), "the pointer 0x0"),
        ];
        for (entry, part) in cases {
            let error = check_kernels(vec![leak(kernel()), entry]).unwrap_err();
            assert!(error.contains("kernels[1]") && error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_null_function_is_found_before_a_reference_is_made() {
        let memory: &'static mut [u64] = vec![0u64; size_of::<RawKernel>().div_ceil(8)].leak();
        let entry: *mut RawKernel = memory.as_mut_ptr().cast();
        // SAFETY: the memory is large enough and aligned; all but the function is copied from a sound kernel.
        unsafe {
            std::ptr::copy_nonoverlapping(
                (&raw const *leak(kernel())).cast::<u8>(),
                entry.cast(),
                offset_of!(RawKernel, run),
            )
        };
        let error = check_kernels(vec![entry.cast_const()]).unwrap_err();
        assert!(error.contains("the function `run`"), "{error}");
    }
}
