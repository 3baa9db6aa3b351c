//! Devices that return invalid answers: each is an error that names the plugin and the field.

use super::*;
use crate::base::intern::DEVICES;
use crate::base::plugin::PluginEntry;
use keyway_sdk::abi::device::{DeviceApi, Queue};
use keyway_sdk::abi::extension::PeerApi;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

const PLUGIN: &str = "test.keyway/liar";

unsafe extern "C" fn one(out: *mut u32) -> i32 {
    // SAFETY: the host passes a valid pointer to one number.
    unsafe { *out = 1 };
    status::OK
}
unsafe extern "C" fn huge(out: *mut u32) -> i32 {
    // SAFETY: as above.
    unsafe { *out = u32::MAX };
    status::OK
}
unsafe extern "C" fn failing(out: *mut u32) -> i32 {
    // SAFETY: as above.
    unsafe { *out = 3 };
    crate::base::message::set_message("the driver is asleep");
    status::FAILED
}
unsafe extern "C" fn sound(_: u32, out: *mut RawDeviceProperties) -> i32 {
    // SAFETY: the host passes a structure.
    unsafe { (*out).name = RawStr::new("sound") };
    status::OK
}
unsafe extern "C" fn null_name(_: u32, out: *mut RawDeviceProperties) -> i32 {
    // SAFETY: as above.
    unsafe { (*out).name = RawStr { ptr: std::ptr::null(), len: 4 } };
    status::OK
}
unsafe extern "C" fn endless_name(_: u32, out: *mut RawDeviceProperties) -> i32 {
    // SAFETY: as above.
    unsafe { (*out).name = RawStr { ptr: "short".as_ptr(), len: usize::MAX } };
    status::OK
}
unsafe extern "C" fn no_properties(_: u32, _: *mut RawDeviceProperties) -> i32 {
    status::FAILED
}
/// The result of `allocate` and `pinned_allocate`: an address that is never written to.
static GIVEN: AtomicU64 = AtomicU64::new(0);
static FREED: AtomicU64 = AtomicU64::new(0);
unsafe extern "C" fn allocate(_: u32, _: u64, _: Queue, out: *mut *mut c_void) -> i32 {
    // SAFETY: the host passes a valid pointer to one pointer.
    unsafe { *out = GIVEN.load(Ordering::Relaxed) as *mut c_void };
    status::OK
}
unsafe extern "C" fn free(_: u32, pointer: *mut c_void, _: u64, _: Queue) -> i32 {
    FREED.store(pointer.addr() as u64, Ordering::Relaxed);
    status::OK
}
unsafe extern "C" fn pinned_allocate(_: u32, _: u64, out: *mut *mut c_void) -> i32 {
    // SAFETY: as for `allocate`.
    unsafe { *out = GIVEN.load(Ordering::Relaxed) as *mut c_void };
    status::OK
}
unsafe extern "C" fn pinned_free(_: u32, pointer: *mut c_void, _: u64) -> i32 {
    FREED.store(pointer.addr() as u64, Ordering::Relaxed);
    status::OK
}
unsafe extern "C" fn copy(_: u32, _: *mut c_void, _: *const c_void, _: u64, _: Queue) -> i32 {
    status::OK
}
unsafe extern "C" fn copy_between(
    _: u32,
    _: *mut c_void,
    _: Queue,
    _: u32,
    _: *const c_void,
    _: Queue,
    _: u64,
) -> i32 {
    status::OK
}

fn honest() -> DeviceApi {
    DeviceApi {
        struct_size: size_of::<DeviceApi>() as u32,
        priority: 100,
        name: RawStr::new("test.keyway/liars"),
        flags: 0,
        count: one,
        properties: sound,
        allocate,
        free,
        copy_from_host: copy,
        copy_to_host: copy,
        copy_between,
        stream_create: None,
        stream_destroy: None,
        stream_synchronize: None,
        event_create: None,
        event_destroy: None,
        event_record: None,
        event_wait: None,
        event_query: None,
        event_synchronize: None,
        event_elapsed: None,
        synchronize: None,
        memory_stats: None,
        empty_cache: None,
        reset_peak: None,
        set_memory_limit: None,
        pinned_allocate: Some(pinned_allocate),
        pinned_free: Some(pinned_free),
        copy_from_host_async: None,
        copy_to_host_async: None,
        extension: None,
    }
}

/// A separate device for each table.
fn device(name: &str, api: DeviceApi) -> Device {
    let plugin: &'static PluginEntry = Box::leak(Box::new(PluginEntry {
        name: PLUGIN,
        version: String::new(),
        variant: String::new(),
        path: "liar.so".into(),
        order: 0,
        compatible_with: Vec::new(),
        unresolved_devices: Vec::new(),
        priority: 0.into(),
        retired: false.into(),
    }));
    let kind = DEVICES.intern(&format!("test.keyway/{name}")).unwrap();
    set_server(kind, Some(Box::leak(Box::new(DeviceEntry { kind, api: Box::leak(Box::new(api)), plugin }))));
    Device { kind, index: 0 }
}

#[track_caller]
fn assert_names(error: &str, parts: &[&str]) {
    assert!(error.contains(PLUGIN) && parts.iter().all(|part| error.contains(part)), "{error}");
}

#[test]
fn counts_that_cannot_be() {
    let d = device("huge", DeviceApi { count: huge, ..honest() });
    let (count, reason) = count(server(d.kind).unwrap());
    assert_eq!(count, 0);
    assert_names(&reason, &["count", "`out` must be at most 65536, but is 4294967295"]);
    let text = properties(d).unwrap_err().to_string();
    assert_names(&text, &["does not exist", "`out` must be at most 65536"]);
    let d = device("failing", DeviceApi { count: failing, ..honest() });
    let text = properties(d).unwrap_err().to_string();
    assert!(text.contains("0 device(s)") && text.contains("the driver is asleep"), "{text}");
}

#[test]
fn properties_that_cannot_be() {
    assert_eq!(properties(device("sound", honest())).unwrap().name, "sound");
    for (name, api, part) in [
        ("null-name", DeviceApi { properties: null_name, ..honest() }, "4 bytes at 0x0"),
        ("endless", DeviceApi { properties: endless_name, ..honest() }, "18446744073709551615 bytes"),
    ] {
        let text = properties(device(name, api)).unwrap_err().to_string();
        assert_names(&text, &["properties", "`name` must be a text of at most 65536 bytes", part]);
    }
    let text = properties(device("mute", DeviceApi { properties: no_properties, ..honest() })).unwrap_err();
    assert_names(&text.to_string(), &["properties", "status 1 without a message"]);
}

#[test]
fn allocations_that_cannot_be() {
    let d = device("allocator", honest());
    let entry = server(d.kind).unwrap();
    for given in [0u64, 8, 0x1020] {
        GIVEN.store(given, Ordering::Relaxed);
        FREED.store(0, Ordering::Relaxed);
        let expected = "`out` must be an address that is not null and a multiple of 64";
        let got = format!("but is {given:#x}");
        let text = super::allocate(entry, d, 128).unwrap_err().to_string();
        assert_names(&text, &["allocate", expected, &got]);
        assert_eq!(FREED.swap(0, Ordering::Relaxed), given, "what came is given back");
        let text = pinned::allocate(entry, d, 128).map(|_| ()).unwrap_err().to_string();
        assert_names(&text, &["pinned_allocate", expected, &got]);
        assert_eq!(FREED.load(Ordering::Relaxed), given);
    }
    GIVEN.store(0, Ordering::Relaxed);
    assert!(super::allocate(entry, d, 0).is_ok(), "no bytes may lie nowhere");
}

static ASKED: AtomicU64 = AtomicU64::new(0);
unsafe extern "C" fn counting(_: u32, _: u64, _: Queue, out: *mut *mut c_void) -> i32 {
    ASKED.fetch_add(1, Ordering::Relaxed);
    // SAFETY: as for `allocate`.
    unsafe { *out = std::ptr::without_provenance_mut(64) };
    status::OK
}

#[test]
fn no_allocator_is_asked_for_a_device_beyond_the_count() {
    let d = device("counted", DeviceApi { allocate: counting, ..honest() });
    let entry = server(d.kind).unwrap();
    for index in [1, 62, 63, 99, u16::MAX] {
        // Also not the second time.
        for _ in 0..2 {
            let error = super::allocate(entry, Device { index, ..d }, 128).unwrap_err();
            assert!(matches!(error, Error::NoSuchDevice { count: 1, .. }), "{error}");
            assert!(!was_used(Device { index, ..d }));
        }
        assert_eq!(ASKED.load(Ordering::Relaxed), 0, "{index}");
    }
    assert!(super::allocate(entry, d, 128).is_ok() && was_used(d));
}

unsafe extern "C" fn can_access(_: u32, _: u32, _: *mut u32) -> i32 {
    status::OK
}
unsafe extern "C" fn no_pair(_: u32, _: u32) -> i32 {
    status::OK
}
unsafe extern "C" fn two(out: *mut u32) -> i32 {
    // SAFETY: the host passes a valid pointer to one number.
    unsafe { *out = 2 };
    status::OK
}
unsafe extern "C" fn short_table(_: u32, _: u32) -> *const c_void {
    static SHORT: PeerApi =
        PeerApi { struct_size: 8, reserved: 0, can_access, enable: no_pair, disable: no_pair };
    std::ptr::from_ref(&SHORT).cast()
}
unsafe extern "C" fn holed_table(_: u32, _: u32) -> *const c_void {
    #[repr(align(8))]
    struct Words(#[allow(dead_code, reason = "read as a table")] [usize; 4]);
    static HOLED: Words = Words([size_of::<PeerApi>(), 64, 0, 64]);
    std::ptr::from_ref(&HOLED).cast()
}
unsafe extern "C" fn crooked_table(_: u32, _: u32) -> *const c_void {
    std::ptr::without_provenance(4)
}

#[test]
fn extensions_that_cannot_be() {
    for (name, extension, parts) in [
        (
            "short",
            short_table as unsafe extern "C" fn(u32, u32) -> _,
            ["`struct_size` must be at least 32", "8"],
        ),
        ("holed", holed_table, ["`enable` must be a function", "a null pointer"]),
        ("crooked", crooked_table, ["aligned address", "0x4"]),
    ] {
        let d = device(name, DeviceApi { count: two, extension: Some(extension), ..honest() });
        let text = peer::can_access(d, Device { index: 1, ..d }).unwrap_err().to_string();
        assert_names(&text, &["extension(PEER)", parts[0], parts[1]]);
    }
    let d = device("plain", DeviceApi { count: two, ..honest() });
    assert!(!peer::can_access(d, Device { index: 1, ..d }).unwrap());
}
