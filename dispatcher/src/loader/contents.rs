//! Validates the tables of a plugin before their first use.

use super::error::LoadError;
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::codes::{device_flag, interposer_flag, kernel_flag};
use keyway_sdk::abi::device::DeviceApi;
use keyway_sdk::abi::dtype::DTypeApi;
use keyway_sdk::abi::interposer::RawInterposer;
use keyway_sdk::abi::layout::{LayoutApi, LayoutOpsApi};
use keyway_sdk::abi::op::{RawKernel, RawOp};
use keyway_sdk::abi::plugin::{EntryPoint, PluginApi, PluginContents, RawList};
use keyway_sdk::abi::preference::RawPreference;
use keyway_sdk::abi::table::{Table, complete, stated_size};
use std::mem::{MaybeUninit, offset_of};

/// The maximum number of entries and of bytes of a name; larger numbers indicate an uninitialised table.
const MAX_ENTRIES: usize = 1 << 20;
const MAX_NAME: usize = 1 << 16;

/// A field that is checked before a reference to its structure is created: a null function pointer behind a Rust reference is
/// undefined behaviour.
pub(super) enum Field {
    /// A function pointer that must not be null.
    Function(&'static str, usize),
    /// A name that must not be empty.
    Name(&'static str, usize),
    /// Text that may be empty.
    Text(&'static str, usize),
    /// The 32 bits of `flags`, with the mask of bits that the host knows: an unknown bit is refused.
    Flags(usize, u32),
}

/// A structure that crosses the boundary by pointer.
pub(super) trait Entry: Table + 'static {
    /// The table's name in messages.
    const TABLE: &'static str;
    /// The checks of each field.
    const CHECKED: &'static [Field];
}

macro_rules! entry {
    ($type:ident, $table:literal $(, $kind:ident $field:ident)* $(; flags $known:expr)?) => {
        impl Entry for $type {
            const TABLE: &'static str = $table;
            const CHECKED: &'static [Field] = &[
                $(Field::$kind(stringify!($field), offset_of!($type, $field)),)*
                $(Field::Flags(offset_of!($type, flags), $known))?
            ];
        }
    };
}

entry!(
    DeviceApi, "devices",
    Name name, Function count, Function properties, Function allocate, Function free,
    Function copy_from_host, Function copy_to_host, Function copy_between
);
entry!(LayoutApi, "layouts", Name name, Text attr_types, Text options, Text samples);
entry!(LayoutOpsApi, "layout_ops", Name layout, Name device, Text shapes);
entry!(RawOp, "ops", Name schema, Text backward, Text samples);
entry!(
    RawKernel, "kernels",
    Name op, Text signature, Name device, Name layout, Name dtype, Function run;
    flags kernel_flag::ALLOCATES
);
entry!(RawInterposer, "interposers", Name name, Function run; flags interposer_flag::DEFAULT_ON);
entry!(DTypeApi, "dtypes", Name name, Text promotes_to, Function to_f64, Function from_f64);
entry!(RawPreference, "preferences", Name op, Name device, Name format);
entry!(PluginApi, "interfaces", Function initialize);
entry!(PluginContents, "contents");
entry!(EntryPoint, "entry", Function negotiate, Function get_interface);

pub(super) fn bad<T: Entry>(index: usize, expected: impl Into<String>, got: impl Into<String>) -> LoadError {
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
    // SAFETY: `check_text` read the same bytes; the plugin upholds that they are valid for the life of the process.
    std::str::from_utf8(unsafe { std::slice::from_raw_parts(checked.ptr, checked.len) }).unwrap_or_default()
}

/// Checks a plugin's table and returns a complete one: the table itself, or a copy in which the fields missing in an older
/// ABI are absent. Later code reads plain fields.
///
/// # Safety
/// `pointer` must be null or point to a structure of the size in its first field, valid and unchanged for the life of
/// the process. The plugin upholds this: the host opens only libraries whose entry has the contract's layout, and never
/// unmaps them.
pub(super) unsafe fn adopt<T: Entry>(index: usize, pointer: *const T) -> Result<&'static T, LoadError> {
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(bad::<T>(index, "an entry", format!("the pointer {pointer:p}")));
    }
    // SAFETY: not null, aligned; every structure of the contract begins with its size.
    let size = unsafe { stated_size(pointer) };
    if size < T::MIN_SIZE {
        return Err(bad::<T>(
            index,
            format!("a `struct_size` of at least {}", T::MIN_SIZE),
            format!("{size}"),
        ));
    }
    let whole: *const T = if size >= size_of::<T>() {
        pointer
    } else {
        // SAFETY: the caller guarantees the size in the structure's first field.
        Box::leak(Box::new(unsafe { complete(pointer, MaybeUninit::zeroed()) })).as_ptr()
    };
    for field in T::CHECKED {
        let checked = match *field {
            Field::Function(name, offset) => {
                // SAFETY: `whole` is a whole structure, whose field at the offset is one pointer wide.
                let function = unsafe { whole.byte_add(offset).cast::<usize>().read() };
                if function == 0 {
                    Err((format!("the function `{name}`"), "a null pointer".to_string()))
                } else {
                    Ok(())
                }
            }
            // SAFETY: as above; the field is a RawStr, whose bytes the plugin keeps.
            Field::Name(name, offset) => unsafe { check_text(whole.byte_add(offset).cast(), name, true) },
            // SAFETY: as above.
            Field::Text(name, offset) => unsafe { check_text(whole.byte_add(offset).cast(), name, false) },
            Field::Flags(offset, known) => {
                // SAFETY: `whole` is a whole structure, whose field at the offset is a `u32`.
                let flags = unsafe { whole.byte_add(offset).cast::<u32>().read() };
                match flags & !known {
                    0 => Ok(()),
                    _ => Err((format!("`flags` within the known {known:#x}"), format!("{flags:#x}"))),
                }
            }
        };
        checked.map_err(|(expected, got)| bad::<T>(index, expected, got))?;
    }
    // SAFETY: the structure is whole and aligned and lives as long as the process; its functions were checked to be
    // non-null, and the fields that a shorter one lacks are zero, which `Table` allows.
    Ok(unsafe { &*whole })
}

/// Adopts the host's own structure after the plugin has filled it in: at most the size that the plugin reports, which is at
/// most the size of the structure.
///
/// # Safety
/// `filled` must be a complete, initialised structure that is no longer written and lives as long as the process; the
/// plugin upholds that it is not written.
pub(super) unsafe fn adopt_filled(
    filled: *const PluginContents,
) -> Result<&'static PluginContents, LoadError> {
    // SAFETY: a whole structure, which begins with its size.
    let size = unsafe { stated_size(filled) };
    let most = size_of::<PluginContents>();
    if size > most {
        return Err(bad::<PluginContents>(
            0,
            format!("a `struct_size` of at most {most}"),
            format!("{size}"),
        ));
    }
    // SAFETY: the stated size is at most the actual one.
    unsafe { adopt(0, filled) }
}

/// Checks a list and returns it as references to complete structures.
///
/// # Safety
/// If `items` is not null it must point to `len` pointers, each as [`adopt`] requires; the plugin upholds this.
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
    let pointers: &[*const T] = unsafe { std::slice::from_raw_parts(list.items, list.len) };
    let entries = pointers
        .iter()
        .enumerate()
        // SAFETY: the caller guarantees that each pointer is valid for `adopt`.
        .map(|(index, &pointer)| unsafe { adopt(index, pointer) })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(entries.leak())
}

/// Checks `count` names of entry `index`.
///
/// # Safety
/// If `list` is aligned and not null it must point to `count` readable `RawStr`, the bytes of each readable if its
/// pointer is not null.
unsafe fn check_names<T: Entry>(
    index: usize,
    name: &str,
    list: *const RawStr,
    count: u32,
) -> Result<(), LoadError> {
    if count as usize > MAX_ENTRIES {
        return Err(bad::<T>(index, format!("at most {MAX_ENTRIES} names in `{name}`"), format!("{count}")));
    }
    if count > 0 && (list.is_null() || !list.is_aligned()) {
        return Err(bad::<T>(index, format!("{count} names in `{name}`"), format!("the pointer {list:p}")));
    }
    for i in 0..count as usize {
        // SAFETY: per this function's contract.
        unsafe { check_text(list.add(i), name, true) }
            .map_err(|(expected, got)| bad::<T>(index, expected, got))?;
    }
    Ok(())
}

/// Checks that the fields of each device are consistent, and that devices are consistent with each other.
fn check_devices(devices: &[&DeviceApi]) -> Result<(), LoadError> {
    for (index, api) in devices.iter().enumerate() {
        let wrong = |expected: String, got: &str| Err(bad::<DeviceApi>(index, expected, got));
        // SAFETY: `check_list` found the name readable and UTF-8.
        let name = unsafe { api.name.read() };
        // `@` and `:` would make a name mean another plugin's device, or an index.
        if name.contains(|c: char| c == '@' || c == ':' || c.is_whitespace() || c.is_control()) {
            return wrong("a `name` without `@`, `:` and white space".to_string(), &format!("`{name}`"));
        }
        // SAFETY: as above.
        if devices[..index].iter().any(|other| unsafe { other.name.read() } == name) {
            return wrong("a `name` of its own".to_string(), &format!("`{name}` again"));
        }
        macro_rules! present {
            ($($field:ident),+) => { [$((stringify!($field), api.$field.is_some())),+] };
        }
        let streams = present!(stream_create, stream_destroy, stream_synchronize);
        let events =
            present!(event_create, event_destroy, event_record, event_wait, event_query, event_synchronize);
        let pinned = present!(pinned_allocate, pinned_free);
        let copies = present!(copy_from_host_async, copy_to_host_async);
        for group in [&streams[..], &events, &pinned, &copies] {
            together(index, group)?;
        }
        for needed in [&events[..], &pinned] {
            if copies[0].1 && !needed[0].1 {
                return wrong(format!("`{}` beside `{}`", needed[0].0, copies[0].0), "a null pointer");
            }
        }
        if api.flags & device_flag::ASYNCHRONOUS != 0 && api.synchronize.is_none() {
            return wrong("`synchronize` of an asynchronous device".to_string(), "a null pointer");
        }
    }
    Ok(())
}

/// Fails if only some functions of a group are present.
fn together(index: usize, group: &[(&str, bool)]) -> Result<(), LoadError> {
    let there = group.iter().find(|(_, there)| *there);
    let missing = group.iter().find(|(_, there)| !*there);
    match (there, missing) {
        (Some((there, _)), Some((missing, _))) => {
            Err(bad::<DeviceApi>(index, format!("`{missing}` beside `{there}`"), "a null pointer"))
        }
        _ => Ok(()),
    }
}

/// The checked tables of a plugin: every entry is present and large enough, with its names and functions.
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
    /// Dtypes.
    pub dtypes: &'static [&'static DTypeApi],
    /// Functions of layouts, for each device.
    pub layout_ops: &'static [&'static LayoutOpsApi],
    /// Times of ops in memory formats and layouts.
    pub preferences: &'static [&'static RawPreference],
}

/// Checks all that `initialize` wrote.
///
/// # Safety
/// Each list of `contents` must be as [`check_list`] requires; the plugin upholds this.
pub(super) unsafe fn check(contents: &PluginContents) -> Result<Tables, LoadError> {
    // SAFETY: the caller guarantees the contract of each list.
    let tables = unsafe {
        Tables {
            devices: check_list(&contents.devices)?,
            layouts: check_list(&contents.layouts)?,
            ops: check_list(&contents.ops)?,
            kernels: check_list(&contents.kernels)?,
            interposers: check_list(&contents.interposers)?,
            dtypes: check_list(&contents.dtypes)?,
            layout_ops: check_list(&contents.layout_ops)?,
            preferences: check_list(&contents.preferences)?,
        }
    };
    check_devices(tables.devices)?;
    for (index, layout) in tables.layouts.iter().enumerate() {
        let lists =
            [("components", layout.components, layout.n_components), ("attrs", layout.attrs, layout.n_attrs)];
        for (name, list, count) in lists {
            // SAFETY: `components` and `attrs` point to the number of `RawStr` in their counts; the plugin upholds
            // this.
            unsafe { check_names::<LayoutApi>(index, name, list, count)? };
        }
    }
    for (index, dtype) in tables.dtypes.iter().enumerate() {
        crate::base::dtype::table::check(dtype)
            .map_err(|(expected, got)| bad::<DTypeApi>(index, expected, got))?;
    }
    for (index, op) in tables.ops.iter().enumerate() {
        // SAFETY: `parts` points to `n_parts` RawStr; the plugin upholds this.
        unsafe { check_names::<RawOp>(index, "parts", op.parts, op.n_parts)? };
    }
    for (index, interposer) in tables.interposers.iter().enumerate() {
        let (list, count) = (interposer.ops, interposer.n_ops);
        // SAFETY: `ops` points to `n_ops` RawStr; the plugin upholds this.
        unsafe { check_names::<RawInterposer>(index, "ops", list, count)? };
    }
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_sdk::abi::device::Queue;
    use keyway_sdk::abi::tensor::RawCall;
    use std::ffi::c_void;

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
            (
                leak(RawKernel { flags: 0x11, ..kernel() }),
                "`flags` within the known 0x1 in kernels[1], got 0x11",
            ),
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
    #[test]
    fn a_dtype_without_a_conversion_is_refused() {
        let entry: *mut DTypeApi =
            Box::leak(Box::new(std::mem::MaybeUninit::<DTypeApi>::zeroed())).as_mut_ptr();
        // SAFETY: the fields are within the structure.
        unsafe {
            (&raw mut (*entry).struct_size).write(size_of::<DTypeApi>() as u32);
            (&raw mut (*entry).name).write(RawStr::new("test.example/null"));
        }
        let pointers: &'static [*const DTypeApi] = Box::leak(Box::new([entry.cast_const()]));
        let list = RawList { items: pointers.as_ptr(), len: 1 };
        // SAFETY: the list points to one pointer, to a leaked structure.
        let error = unsafe { check_list(&list) }.map(<[&DTypeApi]>::len).unwrap_err().to_string();
        assert!(error.contains("dtypes[0]") && error.contains("the function `to_f64`"), "{error}");
    }

    struct Sound;
    impl keyway_sdk::author::Device for Sound {
        const NAME: &'static str = "test.keyway/sound";
        const FLAGS: u64 = 0;
        const STREAMS: bool = true;
        const PINNED: bool = true;
        const ASYNC_COPIES: bool = true;
        fn count() -> Result<u32, keyway_sdk::Error> {
            Ok(1)
        }
        fn properties(_: u32) -> Result<keyway_sdk::author::Properties, keyway_sdk::Error> {
            Err(nothing())
        }
        unsafe fn allocate(_: u32, _: u64, _: Queue) -> Result<*mut c_void, keyway_sdk::Error> {
            Err(nothing())
        }
        unsafe fn free(_: u32, _: *mut c_void, _: u64, _: Queue) -> Result<(), keyway_sdk::Error> {
            Err(nothing())
        }
        unsafe fn copy_from_host(
            _: u32,
            _: *mut c_void,
            _: *const c_void,
            _: u64,
            _: Queue,
        ) -> Result<(), keyway_sdk::Error> {
            Err(nothing())
        }
        unsafe fn copy_to_host(
            _: u32,
            _: *mut c_void,
            _: *const c_void,
            _: u64,
            _: Queue,
        ) -> Result<(), keyway_sdk::Error> {
            Err(nothing())
        }
        unsafe fn copy_between(
            _: (u32, *mut c_void, Queue),
            _: (u32, *const c_void, Queue),
            _: u64,
        ) -> Result<(), keyway_sdk::Error> {
            Err(nothing())
        }
    }

    fn nothing() -> keyway_sdk::Error {
        keyway_sdk::Error::Failed { detail: "never called".to_string() }
    }

    #[test]
    fn functions_that_belong_together_come_together() {
        let sound = || keyway_sdk::author::device_api::<Sound>();
        assert!(check_devices(&[&sound()]).is_ok());
        let none = DeviceApi {
            pinned_allocate: None,
            pinned_free: None,
            copy_from_host_async: None,
            copy_to_host_async: None,
            extension: None,
            synchronize: None,
            event_elapsed: None,
            ..sound()
        };
        assert!(check_devices(&[&none]).is_ok(), "what is optional may be absent");
        let cases = [
            (DeviceApi { pinned_free: None, ..sound() }, "`pinned_free` beside `pinned_allocate`"),
            (
                DeviceApi { stream_synchronize: None, ..sound() },
                "`stream_synchronize` beside `stream_create`",
            ),
            (DeviceApi { event_query: None, ..sound() }, "`event_query` beside `event_create`"),
            (DeviceApi { copy_to_host_async: None, ..sound() }, "`copy_to_host_async` beside"),
            (
                DeviceApi { pinned_allocate: None, pinned_free: None, ..sound() },
                "`pinned_allocate` beside `copy_from_host_async`",
            ),
            (
                DeviceApi { flags: device_flag::ASYNCHRONOUS, synchronize: None, ..sound() },
                "`synchronize` of an asynchronous device",
            ),
            (DeviceApi { name: RawStr::new("a@b"), ..sound() }, "a `name` without `@`"),
            (DeviceApi { name: RawStr::new("a:1"), ..sound() }, "a `name` without `@`"),
            (DeviceApi { name: RawStr::new("a b"), ..sound() }, "a `name` without `@`"),
            (sound(), "a `name` of its own"),
        ];
        for (api, part) in cases {
            let error = check_devices(&[&sound(), &api]).unwrap_err().to_string();
            // The name is the first device's in all but the cases about names.
            let alone = check_devices(&[&api]).err().map_or(error.clone(), |e| e.to_string());
            assert!(alone.contains(part) && alone.contains("devices["), "{alone}");
            assert!(error.contains("devices[1]"), "{error}");
        }
    }
}
