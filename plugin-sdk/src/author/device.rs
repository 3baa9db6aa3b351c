//! A device as a trait, and the ABI table built from it.

use super::error::Error;
use super::guard::guarded;
use crate::abi::RawStr;
use crate::abi::codes::interface;
use crate::abi::device::{DeviceApi, Queue, RawDeviceProperties, RawMemoryStats};
use crate::abi::extension::{CaptureApi, PeerApi, ReportApi};
use crate::abi::table::{Table, fill};
use std::ffi::c_void;

/// The properties of one device.
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    /// Processing units: cores, multiprocessors.
    pub units: u32,
    /// Bytes of memory in all; 0 if unknown.
    pub total_memory: u64,
    /// See [`crate::abi::codes::device_flag`].
    pub flags: u64,
    /// The display name.
    pub name: &'static str,
}

#[cold]
pub(super) fn lacks(what: &str) -> Error {
    Error::Unsupported { what: format!("{what} on this device") }
}

/// The functions of one device type. [`device_api`] builds the ABI table from it, with a panic guard around each function.
///
/// Pointers and streams were returned by this device, and are valid as the contract of [`DeviceApi`] requires; the host
/// upholds this, and therefore the functions that take them are `unsafe`.
#[allow(clippy::missing_safety_doc, unused_variables)]
pub trait Device: 'static {
    /// The device's name: `cpu`, or `vendor.example/npu`.
    const NAME: &'static str;
    /// See [`crate::abi::codes::device_flag`].
    const FLAGS: u64;
    /// The priority: of several plugins, the one with the highest provides the device.
    const PRIORITY: u32 = 100;
    /// Whether the stream and event functions are implemented.
    const STREAMS: bool = false;
    /// Whether the memory statistics and the cache are implemented.
    const STATS: bool = false;
    /// Whether pinned host memory is implemented.
    const PINNED: bool = false;
    /// Whether copies from and to pinned memory can be queued; needs [`STREAMS`](Self::STREAMS) and
    /// [`PINNED`](Self::PINNED).
    const ASYNC_COPIES: bool = false;
    /// Direct access between devices, of [`peer_api`](super::peer_api). Experimental.
    const PEER: Option<&'static PeerApi> = None;
    /// Captured work, of [`capture_api`](super::capture_api). Experimental.
    const CAPTURE: Option<&'static CaptureApi> = None;
    /// The device's report, built by [`report_api`](super::report_api). Experimental.
    const REPORT: Option<&'static ReportApi> = None;

    /// The number of devices, or an error with the reason why there are none.
    fn count() -> Result<u32, Error>;
    /// The properties of one device.
    fn properties(index: u32) -> Result<Properties, Error>;
    /// Allocates `bytes` with at least 64-byte alignment, usable on `stream`.
    unsafe fn allocate(index: u32, bytes: u64, stream: Queue) -> Result<*mut c_void, Error>;
    /// Frees memory after the work already submitted to `stream`.
    unsafe fn free(index: u32, pointer: *mut c_void, bytes: u64, stream: Queue) -> Result<(), Error>;
    /// Copies from the host; `source` may be reused on return.
    unsafe fn copy_from_host(
        index: u32,
        target: *mut c_void,
        source: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error>;
    /// Copies to the host; done on return.
    unsafe fn copy_to_host(
        index: u32,
        target: *mut c_void,
        source: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error>;
    /// Copies between two devices of this type, or within one; the ranges do not overlap. `from` and `to` are (index,
    /// address, stream); the copy runs after earlier work of both streams and before their later work.
    unsafe fn copy_between(
        to: (u32, *mut c_void, Queue),
        from: (u32, *const c_void, Queue),
        bytes: u64,
    ) -> Result<(), Error>;

    /// Creates a stream.
    fn stream_create(index: u32) -> Result<Queue, Error> {
        Err(lacks("streams"))
    }
    /// Destroys a stream after its work.
    unsafe fn stream_destroy(index: u32, stream: Queue) -> Result<(), Error> {
        Err(lacks("streams"))
    }
    /// Waits for all work of a stream.
    unsafe fn stream_synchronize(index: u32, stream: Queue) -> Result<(), Error> {
        Err(lacks("streams"))
    }
    /// Creates an event.
    fn event_create(index: u32) -> Result<Queue, Error> {
        Err(lacks("events"))
    }
    /// Destroys an event.
    unsafe fn event_destroy(index: u32, event: Queue) -> Result<(), Error> {
        Err(lacks("events"))
    }
    /// Marks a point in a stream.
    unsafe fn event_record(index: u32, event: Queue, stream: Queue) -> Result<(), Error> {
        Err(lacks("events"))
    }
    /// Makes a stream wait for an event.
    unsafe fn event_wait(index: u32, event: Queue, stream: Queue) -> Result<(), Error> {
        Err(lacks("events"))
    }
    /// Whether an event has happened.
    unsafe fn event_query(index: u32, event: Queue) -> Result<bool, Error> {
        Err(lacks("events"))
    }
    /// Waits for an event.
    unsafe fn event_synchronize(index: u32, event: Queue) -> Result<(), Error> {
        Err(lacks("events"))
    }
    /// Nanoseconds between two events.
    unsafe fn event_elapsed(index: u32, from: Queue, to: Queue) -> Result<u64, Error> {
        Err(lacks("events"))
    }
    /// Waits for all work of a device. No-op on a synchronous device.
    fn synchronize(index: u32) -> Result<(), Error> {
        Ok(())
    }
    /// The memory statistics; `struct_size` is filled in by the caller.
    fn memory_stats(index: u32) -> Result<RawMemoryStats, Error> {
        Err(lacks("memory statistics"))
    }
    /// Returns cached memory to the system.
    fn empty_cache(index: u32) -> Result<(), Error> {
        Err(lacks("a cache"))
    }
    /// Resets the peaks in the statistics.
    fn reset_peak(index: u32) -> Result<(), Error> {
        Err(lacks("memory statistics"))
    }
    /// Limits the bytes in use; 0 lifts the limit.
    fn set_memory_limit(index: u32, bytes: u64) -> Result<(), Error> {
        Err(lacks("a memory limit"))
    }
    /// Allocates page-locked host memory for direct copies from and to the devices of this type, aligned to at least 64
    /// bytes. The host caches freed blocks, so calls are rare.
    fn pinned_allocate(index: u32, bytes: u64) -> Result<*mut c_void, Error> {
        Err(lacks("pinned memory"))
    }
    /// Frees pinned memory; no copy uses it any more.
    unsafe fn pinned_free(index: u32, pointer: *mut c_void, bytes: u64) -> Result<(), Error> {
        Err(lacks("pinned memory"))
    }
    /// Enqueues a copy from pinned memory, which is unchanged until the work of `stream` so far has finished.
    unsafe fn copy_from_host_async(
        index: u32,
        target: *mut c_void,
        source: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error> {
        Err(lacks("copies that do not block"))
    }
    /// Enqueues a copy to pinned memory, which is not read until `stream` has reached this point.
    unsafe fn copy_to_host_async(
        index: u32,
        target: *mut c_void,
        source: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error> {
        Err(lacks("copies that do not block"))
    }
}

/// Runs `work` under the guard and writes its value to `out`.
///
/// # Safety
/// `out` must be valid for a write; the host upholds this.
pub(super) unsafe fn give<T>(out: *mut T, work: impl FnOnce() -> Result<T, Error>) -> i32 {
    guarded(|| {
        let value = work()?;
        // SAFETY: the caller guarantees a valid `out`.
        unsafe { out.write(value) };
        Ok(())
    })
}

/// Fills in the reader's structure up to its size.
///
/// # Safety
/// As [`fill`]; the host upholds this.
unsafe fn give_sized<T: Table>(out: *mut T, value: &T) -> Result<(), Error> {
    // SAFETY: per this function's contract.
    match unsafe { fill(out, value) } {
        0 => Err(Error::InvalidArgument {
            argument: "out",
            expected: "a structure that states its size".into(),
            got: "a size of 0".into(),
        }),
        _ => Ok(()),
    }
}

/// A table entry: an `extern "C"` function that runs `$body` under the guard.
macro_rules! entry {
    ($d:ident; $($arguments:tt)*) => { entry!(@for Device, $d; $($arguments)*) };
    (@for $trait:path, $d:ident; $($a:ident: $t:ty),* ; $body:expr) => {{
        unsafe extern "C" fn shim<$d: $trait>($($a: $t),*) -> i32 {
            // SAFETY: the host upholds the contract of this entry of `DeviceApi`, which is that of the
            // trait's function.
            #[allow(unused_unsafe)]
            guarded(|| unsafe { $body })
        }
        shim::<$d>
    }};
    (@for $trait:path, $d:ident; $($a:ident: $t:ty),* => $out:ident: $o:ty; $body:expr) => {{
        unsafe extern "C" fn shim<$d: $trait>($($a: $t,)* $out: *mut $o) -> i32 {
            // SAFETY: as above; `out` is valid for a write.
            #[allow(unused_unsafe)]
            unsafe { give($out, || unsafe { $body }) }
        }
        shim::<$d>
    }};
}

pub(super) use entry;

/// The optional interfaces of a device. A constant lookup, which cannot panic.
unsafe extern "C" fn extension<D: Device>(id: u32, version: u32) -> *const c_void {
    if !(crate::abi::ABI_MIN..=crate::abi::ABI_MAX).contains(&version) {
        return std::ptr::null();
    }
    match id {
        interface::PEER => D::PEER.map_or(std::ptr::null(), |api| std::ptr::from_ref(api).cast()),
        interface::CAPTURE => D::CAPTURE.map_or(std::ptr::null(), |api| std::ptr::from_ref(api).cast()),
        interface::REPORT => D::REPORT.map_or(std::ptr::null(), |api| std::ptr::from_ref(api).cast()),
        _ => std::ptr::null(),
    }
}

/// The table of a device, for `static API: DeviceApi = device_api::<MyDevice>();`.
pub const fn device_api<D: Device>() -> DeviceApi {
    DeviceApi {
        struct_size: size_of::<DeviceApi>() as u32,
        priority: D::PRIORITY,
        name: RawStr::new(D::NAME),
        flags: D::FLAGS,
        count: entry!(D; => out: u32; D::count()),
        properties: entry!(D; index: u32, out: *mut RawDeviceProperties; {
            let p = D::properties(index)?;
            give_sized(out, &RawDeviceProperties {
                struct_size: 0,
                units: p.units,
                total_memory: p.total_memory,
                flags: p.flags,
                name: RawStr::new(p.name),
            })
        }),
        allocate: entry!(D; index: u32, bytes: u64, stream: Queue => out: *mut c_void; D::allocate(index, bytes, stream)),
        free: entry!(D; index: u32, pointer: *mut c_void, bytes: u64, stream: Queue; D::free(index, pointer, bytes, stream)),
        copy_from_host: entry!(D; index: u32, to: *mut c_void, from: *const c_void, bytes: u64, stream: Queue;
            D::copy_from_host(index, to, from, bytes, stream)),
        copy_to_host: entry!(D; index: u32, to: *mut c_void, from: *const c_void, bytes: u64, stream: Queue;
            D::copy_to_host(index, to, from, bytes, stream)),
        copy_between: entry!(D; to_index: u32, to: *mut c_void, to_stream: Queue,
            from_index: u32, from: *const c_void, from_stream: Queue, bytes: u64;
            D::copy_between((to_index, to, to_stream), (from_index, from, from_stream), bytes)),
        stream_create: if D::STREAMS {
            Some(entry!(D; index: u32 => out: Queue; D::stream_create(index)))
        } else {
            None
        },
        stream_destroy: if D::STREAMS {
            Some(entry!(D; index: u32, s: Queue; D::stream_destroy(index, s)))
        } else {
            None
        },
        stream_synchronize: if D::STREAMS {
            Some(entry!(D; index: u32, s: Queue; D::stream_synchronize(index, s)))
        } else {
            None
        },
        event_create: if D::STREAMS {
            Some(entry!(D; index: u32 => out: Queue; D::event_create(index)))
        } else {
            None
        },
        event_destroy: if D::STREAMS {
            Some(entry!(D; index: u32, e: Queue; D::event_destroy(index, e)))
        } else {
            None
        },
        event_record: if D::STREAMS {
            Some(entry!(D; index: u32, e: Queue, s: Queue; D::event_record(index, e, s)))
        } else {
            None
        },
        event_wait: if D::STREAMS {
            Some(entry!(D; index: u32, e: Queue, s: Queue; D::event_wait(index, e, s)))
        } else {
            None
        },
        event_query: if D::STREAMS {
            Some(entry!(D; index: u32, e: Queue => out: u32; D::event_query(index, e).map(u32::from)))
        } else {
            None
        },
        event_synchronize: if D::STREAMS {
            Some(entry!(D; index: u32, e: Queue; D::event_synchronize(index, e)))
        } else {
            None
        },
        event_elapsed: if D::STREAMS {
            Some(entry!(D; index: u32, from: Queue, to: Queue => out: u64; D::event_elapsed(index, from, to)))
        } else {
            None
        },
        synchronize: Some(entry!(D; index: u32; D::synchronize(index))),
        memory_stats: if D::STATS {
            Some(entry!(D; index: u32, out: *mut RawMemoryStats; give_sized(out, &D::memory_stats(index)?)))
        } else {
            None
        },
        empty_cache: if D::STATS { Some(entry!(D; index: u32; D::empty_cache(index))) } else { None },
        reset_peak: if D::STATS { Some(entry!(D; index: u32; D::reset_peak(index))) } else { None },
        set_memory_limit: if D::STATS {
            Some(entry!(D; index: u32, bytes: u64; D::set_memory_limit(index, bytes)))
        } else {
            None
        },
        pinned_allocate: if D::PINNED {
            Some(entry!(D; index: u32, bytes: u64 => out: *mut c_void; D::pinned_allocate(index, bytes)))
        } else {
            None
        },
        pinned_free: if D::PINNED {
            Some(
                entry!(D; index: u32, pointer: *mut c_void, bytes: u64; D::pinned_free(index, pointer, bytes)),
            )
        } else {
            None
        },
        copy_from_host_async: if D::ASYNC_COPIES {
            Some(entry!(D; index: u32, to: *mut c_void, from: *const c_void, bytes: u64, stream: Queue;
                D::copy_from_host_async(index, to, from, bytes, stream)))
        } else {
            None
        },
        copy_to_host_async: if D::ASYNC_COPIES {
            Some(entry!(D; index: u32, to: *mut c_void, from: *const c_void, bytes: u64, stream: Queue;
                D::copy_to_host_async(index, to, from, bytes, stream)))
        } else {
            None
        },
        extension: Some(extension::<D>),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;
    impl Device for Nothing {
        const NAME: &'static str = "example.org/nothing";
        const FLAGS: u64 = 0;
        fn count() -> Result<u32, Error> {
            Ok(3)
        }
        fn properties(index: u32) -> Result<Properties, Error> {
            Ok(Properties { units: index, total_memory: 7, flags: 0, name: "nothing" })
        }
        unsafe fn allocate(_: u32, bytes: u64, _: Queue) -> Result<*mut c_void, Error> {
            Err(Error::OutOfMemory { requested: bytes, available: 0 })
        }
        unsafe fn free(_: u32, _: *mut c_void, _: u64, _: Queue) -> Result<(), Error> {
            Ok(())
        }
        unsafe fn copy_from_host(
            _: u32,
            _: *mut c_void,
            _: *const c_void,
            _: u64,
            _: Queue,
        ) -> Result<(), Error> {
            Ok(())
        }
        unsafe fn copy_to_host(
            _: u32,
            _: *mut c_void,
            _: *const c_void,
            _: u64,
            _: Queue,
        ) -> Result<(), Error> {
            Ok(())
        }
        unsafe fn copy_between(
            _: (u32, *mut c_void, Queue),
            _: (u32, *const c_void, Queue),
            _: u64,
        ) -> Result<(), Error> {
            Ok(())
        }
    }

    #[test]
    fn the_table_calls_the_trait_and_leaves_out_what_it_lacks() {
        static API: DeviceApi = device_api::<Nothing>();
        let (mut count, mut pointer) = (0, std::ptr::null_mut());
        let mut properties =
            RawDeviceProperties { struct_size: 16, units: 0, total_memory: 0, flags: 9, name: RawStr::EMPTY };
        // SAFETY: all addresses are valid for the calls.
        unsafe {
            assert_eq!((API.count)(&mut count), 0);
            assert_eq!(
                (API.allocate)(0, 64, std::ptr::null_mut(), &mut pointer),
                crate::abi::codes::status::OUT_OF_MEMORY
            );
            assert_eq!((API.properties)(2, &mut properties), 0);
        }
        assert_eq!((count, properties.units, properties.total_memory, properties.struct_size), (3, 2, 7, 16));
        assert_eq!(properties.flags, 9, "beyond the reader's size nothing is written");
        assert!(API.stream_create.is_none() && API.memory_stats.is_none() && API.pinned_allocate.is_none());
        let extension = API.extension.unwrap();
        for id in [interface::PLUGIN, interface::PEER, interface::CAPTURE, interface::REPORT, u32::MAX] {
            // SAFETY: the function takes integers only.
            assert!(unsafe { extension(id, crate::abi::ABI_MAX) }.is_null());
        }
    }
}
