//! A plugin that fails where a test tells it to.
//!
//! `KEYWAY_TEST_FAULT`, read when the host initialises the plugin, may be `panic_at_load` or
//! `fail_at_load`; anything else loads well. The kernel of `test_panic` always panics, that of
//! `test_fail` always answers with an error, and that of `test_nothing` does nothing.
//!
//! It also brings the device `test.keyway/twin`, whose allocator panics when it is asked for
//! [`PANICS_AT`] bytes and answers with an error of its own for [`FAILS_AT`].

use keyway_sdk::abi::codes::device_flag;
use keyway_sdk::abi::device::{DeviceApi, Queue};
use keyway_sdk::author::{Arg, Call, Device, Error, Properties, call_op, device_api};
use keyway_sdk::{plugin, register_kernel};
use std::ffi::c_void;

plugin! {
    name: "keyway.test/faulty",
    version: env!("CARGO_PKG_VERSION"),
    description: "Fails where a test tells it to",
    devices: ["cpu", "test.keyway/twin"],
    layouts: ["strided"],
    kernels: 8,
    needs: [],
    setup: |contents| match std::env::var("KEYWAY_TEST_FAULT").as_deref() {
        Ok("panic_at_load") => panic!("told to panic at load"),
        Ok("fail_at_load") => Err(Error::Failed { detail: "told to fail at load".to_string() }),
        _ => {
            contents.device(&TWIN);
            Ok(())
        }
    },
}

register_kernel! {
    op: "test_nothing", signature: "T>T", device: "cpu", layout: "strided",
    f32 => |_call| Ok(()),
    f64 => |_call| Ok(()),
}

register_kernel! {
    op: "test_panic", signature: "T>T", device: "cpu", layout: "strided",
    f32 => |_call| panic!("told to panic in a kernel"),
}

register_kernel! {
    op: "test_fail", signature: "T>T", device: "cpu", layout: "strided",
    f32 => |_call| Err(Error::Failed { detail: "told to fail in a kernel".to_string() }),
}

register_kernel! {
    op: "test_partial", signature: "T>T", device: "cpu", layout: "strided",
    f32 => few,
    f64 => few,
}

fn few(call: &Call<'_>) -> Result<(), Error> {
    match call.output(0)?.numel() {
        0..=2 => Ok(()),
        _ => Err(Error::Unsupported { what: "a tensor of more than two elements".to_string() }),
    }
}

register_kernel! {
    op: "test_refuse", signature: "T>T", device: "cpu", layout: "strided",
    f32 => |_call| Err(Error::Unsupported { what: "anything".to_string() }),
}

register_kernel! {
    op: "test_nested", signature: "T>T", device: "cpu", layout: "strided",
    f32 => |call| call_op("test_refuse", &[Arg::Tensor(call.tensor(0)?)]).map(|_| ()),
}

/// The number of bytes at which the allocator panics.
pub const PANICS_AT: u64 = 4 * 1313;
/// The number of bytes at which the allocator answers with an error.
pub const FAILS_AT: u64 = 4 * 1414;

static TWIN: DeviceApi = device_api::<Twin>();

struct Twin;

fn layout(bytes: u64) -> Result<std::alloc::Layout, Error> {
    std::alloc::Layout::from_size_align(bytes as usize, 64)
        .map_err(|_| Error::OutOfMemory { requested: bytes, available: 0 })
}

impl Device for Twin {
    const NAME: &'static str = "test.keyway/twin";
    const FLAGS: u64 = device_flag::HOST_ACCESSIBLE;
    const PRIORITY: u32 = 50;

    fn count() -> Result<u32, Error> {
        Ok(1)
    }
    fn properties(_index: u32) -> Result<Properties, Error> {
        Ok(Properties { units: 1, total_memory: 0, flags: Self::FLAGS, name: "the worse twin" })
    }
    unsafe fn allocate(index: u32, bytes: u64, _stream: Queue) -> Result<*mut c_void, Error> {
        match bytes {
            _ if index > 0 => Err(Error::Failed { detail: "there is one twin only".to_string() }),
            PANICS_AT => panic!("told to panic in the allocator"),
            FAILS_AT => Err(Error::Failed { detail: "told to fail in the allocator".to_string() }),
            0 => Ok(std::ptr::null_mut()),
            // SAFETY: the layout is not empty.
            _ => Ok(unsafe { std::alloc::alloc(layout(bytes)?) }.cast()),
        }
    }
    unsafe fn free(_index: u32, pointer: *mut c_void, bytes: u64, _stream: Queue) -> Result<(), Error> {
        // SAFETY: the host gives back what `allocate` gave, once and with the same size.
        unsafe { std::alloc::dealloc(pointer.cast(), layout(bytes)?) };
        Ok(())
    }
    unsafe fn copy_from_host(
        _: u32,
        to: *mut c_void,
        from: *const c_void,
        bytes: u64,
        _: Queue,
    ) -> Result<(), Error> {
        // SAFETY: the host gives two areas of at least `bytes` bytes of host memory.
        unsafe { std::ptr::copy(from.cast::<u8>(), to.cast::<u8>(), bytes as usize) };
        Ok(())
    }
    unsafe fn copy_to_host(
        index: u32,
        to: *mut c_void,
        from: *const c_void,
        bytes: u64,
        s: Queue,
    ) -> Result<(), Error> {
        // SAFETY: as for `copy_from_host`.
        unsafe { Self::copy_from_host(index, to, from, bytes, s) }
    }
    unsafe fn copy_between(
        to: (u32, *mut c_void, Queue),
        from: (u32, *const c_void, Queue),
        bytes: u64,
    ) -> Result<(), Error> {
        // SAFETY: as for `copy_from_host`.
        unsafe { Self::copy_from_host(to.0, to.1, from.1, bytes, to.2) }
    }
}
