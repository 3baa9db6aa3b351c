//! A plugin that ends, hangs or misleads its process.
//!
//! A test copies the library and writes the act and its time into `HOW`, as `when:what`, and a unique name into the
//! manifest. So each copy is a different library, and one folder may contain all of them.
//!
//! When: `ctor`, before the library is open; `setup`; `count` and `name`, when it is asked for its devices and their
//! properties; `later` and `late`, in a thread some time after the set-up; `exit`, when the process ends in order, and `dtor`,
//! after that; `wrong`, for tables that cannot be registered; `slot`, for a table of its device with the named function at an
//! address where nothing is.

mod acts;

use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::device::{DeviceApi, Queue};
use keyway_sdk::abi::layout::LayoutApi;
use keyway_sdk::abi::op::RawOp;
use keyway_sdk::author::{Contents, Device, Error, Op, Properties, device_api, op};
use keyway_sdk::{plugin, register_kernel};
use keyway_test_twin::{Own, Twin};
use std::ffi::c_void;
use std::time::Duration;

plugin! {
    name: "keyway.test/unruly-000",
    version: env!("CARGO_PKG_VERSION"),
    description: "Ends, hangs or misleads its process",
    devices: ["test.keyway/unruly"],
    layouts: ["strided"],
    setup: |contents| {
        at("setup")?;
        for (when, after) in [("later", 20), ("late", 400)] {
            if how().0 == when {
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(after));
                    at(when)
                });
            }
        }
        if how().0 == "exit" {
            // SAFETY: the function takes no arguments and lives as long as the process: the library is never unmapped.
            unsafe { libc::atexit(at_exit) };
        }
        contents.device(if how().0 == "slot" { damaged(how().1) } else { &DEVICE });
        wrong(contents)
    },
}

register_kernel! {
    op: "abs", signature: "T>T", device: "test.keyway/unruly", layout: "strided",
    f32 => |_call| Ok(()),
}

/// The act, which a test overwrites.
#[used]
static HOW: [u8; 48] = *b"keyway-unruly-how=never:nothing                 ";

/// The time and the act. Read from the file's bytes, not as a compile-time constant.
fn how() -> (&'static str, &'static str) {
    static READ: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let text = READ.get_or_init(|| {
        // SAFETY: the static is valid, and constant.
        let bytes = unsafe { std::ptr::read_volatile(&raw const HOW) };
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let text = text.split_once('=').map_or("", |(_, how)| how.trim_end());
    text.split_once(':').unwrap_or((text, ""))
}

/// Performs the configured act if this is its time.
fn at(when: &str) -> Result<(), Error> {
    match how() {
        (chosen, what) if chosen == when => acts::act(what),
        _ => Ok(()),
    }
}

extern "C" fn at_exit() {
    let _ = at("exit");
}

extern "C" fn constructor() {
    let _ = at("ctor");
}

extern "C" fn destructor() {
    let _ = at("dtor");
}

#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;

/// Adds an entry that cannot be registered.
fn wrong(contents: &mut Contents) -> Result<(), Error> {
    match how() {
        ("wrong", "two_layouts") => drop(contents.layout(&LAYOUT).layout(&LAYOUT)),
        ("wrong", "schema") => drop(contents.op(&NO_SCHEMA)),
        ("wrong", "two_ops") => drop(contents.op(&OP).op(&OP)),
        // Sound by itself; two plugins that provide it conflict.
        ("wrong", what) if what.starts_with("op_") => drop(contents.op(&OP)),
        ("wrong", "no_name") => drop(contents.layout(&NAMELESS)),
        _ => {}
    }
    Ok(())
}

static COMPONENTS: [RawStr; 1] = [RawStr::new("values")];
static LAYOUT: LayoutApi = layout("test.keyway/unruly");
static NAMELESS: LayoutApi = layout("");

const fn layout(name: &'static str) -> LayoutApi {
    LayoutApi {
        struct_size: size_of::<LayoutApi>() as u32,
        precedence: 90,
        name: RawStr::new(name),
        components: COMPONENTS.as_ptr(),
        attrs: std::ptr::null(),
        n_components: 1,
        n_attrs: 0,
        attr_types: RawStr::EMPTY,
        options: RawStr::EMPTY,
        absolute: 0.0,
        relative: 0.0,
        relative_to_max: 0.0,
        gradient: 0,
        reserved: 0,
        samples: RawStr::EMPTY,
    }
}

static NO_SCHEMA: RawOp = op::<NoSchema>();
static OP: RawOp = op::<Twice>();

struct NoSchema;

impl Op for NoSchema {
    const SCHEMA: &'static str = "this is no schema";
}

struct Twice;

impl Op for Twice {
    const SCHEMA: &'static str = "unruly_twice(Tensor self) -> Tensor";
}

static DEVICE: DeviceApi = device_api::<Unruly>();

/// The device table with one function, or all of one kind, at an unmapped address.
fn damaged(function: &str) -> &'static DeviceApi {
    /// An address that no function has.
    fn nowhere<F>() -> F {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        // SAFETY: none: a test asked for a function that is not there. As wide as an address, and not null.
        unsafe { std::mem::transmute_copy(&std::hint::black_box(8_usize)) }
    }
    let mut table = device_api::<Unruly>();
    match function {
        "memory_stats" => table.memory_stats = Some(nowhere()),
        "in_use" if !is_tried() => table.memory_stats = Some(nowhere()),
        "synchronize" => table.synchronize = Some(nowhere()),
        "empty_cache" => table.empty_cache = Some(nowhere()),
        "extension" => table.extension = Some(nowhere()),
        "copy_between" => table.copy_between = nowhere(),
        "free" => table.free = nowhere(),
        _ => {}
    }
    Box::leak(Box::new(table))
}

/// Whether this process is a trial.
pub(crate) fn is_tried() -> bool {
    std::env::current_exe().is_ok_and(|program| program.ends_with("keyway-probe"))
}

struct Plain;

impl Own for Plain {
    const NAME: &'static str = "test.keyway/unruly";
    const PRIORITY: u32 = 10;
    const COUNT: u32 = 1;
    const TITLE: &'static str = "the unruly twin";
}

/// The twin device of the other test plugins, which acts when it is asked for its count or its name.
struct Unruly;

impl Device for Unruly {
    const NAME: &'static str = Plain::NAME;
    const FLAGS: u64 = Twin::<Plain>::FLAGS;
    const PRIORITY: u32 = Plain::PRIORITY;

    fn count() -> Result<u32, Error> {
        at("count")?;
        Twin::<Plain>::count()
    }

    fn properties(index: u32) -> Result<Properties, Error> {
        at("name")?;
        Twin::<Plain>::properties(index)
    }

    unsafe fn allocate(index: u32, bytes: u64, stream: Queue) -> Result<*mut c_void, Error> {
        // SAFETY: as the caller guarantees, here and below.
        unsafe { Twin::<Plain>::allocate(index, bytes, stream) }
    }

    unsafe fn free(index: u32, pointer: *mut c_void, bytes: u64, stream: Queue) -> Result<(), Error> {
        // SAFETY: as the caller guarantees.
        unsafe { Twin::<Plain>::free(index, pointer, bytes, stream) }
    }

    unsafe fn copy_from_host(
        index: u32,
        to: *mut c_void,
        from: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error> {
        // SAFETY: as the caller guarantees.
        unsafe { Twin::<Plain>::copy_from_host(index, to, from, bytes, stream) }
    }

    unsafe fn copy_to_host(
        index: u32,
        to: *mut c_void,
        from: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error> {
        // SAFETY: as the caller guarantees.
        unsafe { Twin::<Plain>::copy_to_host(index, to, from, bytes, stream) }
    }

    unsafe fn copy_between(
        to: (u32, *mut c_void, Queue),
        from: (u32, *const c_void, Queue),
        bytes: u64,
    ) -> Result<(), Error> {
        // SAFETY: as the caller guarantees.
        unsafe { Twin::<Plain>::copy_between(to, from, bytes) }
    }
}
