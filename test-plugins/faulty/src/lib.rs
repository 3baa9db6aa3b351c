//! A plugin that fails on a test's request.
//!
//! `KEYWAY_TEST_FAULT`, read when the host initialises the plugin, may be `panic_at_load`, `fail_at_load` or
//! `exit_at_load`; with any other value the plugin loads normally. The kernel of `test_panic` always panics, that of
//! `test_fail` always returns an error, and that of `test_nothing` does nothing.
//!
//! It also declares the layout `test.keyway/hollow`, whose functions are all missing, and provides the device
//! `test.keyway/twin`, whose allocator panics for a request of [`PANICS_AT`] bytes and returns its own error for
//! [`FAILS_AT`].

use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::device::DeviceApi;
use keyway_sdk::abi::layout::{LayoutApi, LayoutOpsApi};
use keyway_sdk::author::{Arg, Call, Error, call_op, device_api};
use keyway_sdk::{plugin, register_kernel};
use keyway_test_twin::{Own, Twin};

plugin! {
    name: "keyway.test/faulty",
    version: env!("CARGO_PKG_VERSION"),
    description: "Fails where a test tells it to",
    devices: ["cpu", "test.keyway/twin"],
    layouts: ["strided", "test.keyway/hollow"],
    setup: |contents| match std::env::var("KEYWAY_TEST_FAULT").as_deref() {
        Ok("panic_at_load") => panic!("told to panic at load"),
        Ok("exit_at_load") => std::process::exit(0),
        Ok("fail_at_load") => Err(Error::Failed { detail: "told to fail at load".to_string() }),
        _ => {
            contents.device(&TWIN).layout(&HOLLOW).layout_ops(&HOLLOW_OPS);
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
    op: "test_twin", signature: "T>T", device: "test.keyway/twin", layout: "strided",
    f32 => add_one,
}

/// Reads the twin's memory, as a plugin may that brought it.
fn add_one(call: &Call<'_>) -> Result<(), Error> {
    let (from, mut to) = (call.view::<f32>(0)?, call.out::<f32>(0)?);
    for i in 0..call.output(0)?.numel() {
        to.set(&[i], from.get(&[i]).unwrap_or(f32::NAN) + 1.0);
    }
    Ok(())
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

register_kernel! {
    op: "test_endless", signature: "T>T", device: "cpu", layout: "strided",
    f32 => |call| call_op("test_endless", &[Arg::Tensor(call.tensor(0)?)]).map(|_| ()),
}

/// The number of bytes at which the allocator panics.
pub const PANICS_AT: u64 = 4 * 1313;
/// The number of bytes at which the allocator returns an error.
pub const FAILS_AT: u64 = 4 * 1414;

static COMPONENTS: [RawStr; 1] = [RawStr::new("values")];
static HOLLOW: LayoutApi = LayoutApi {
    struct_size: size_of::<LayoutApi>() as u32,
    precedence: 100,
    name: RawStr::new("test.keyway/hollow"),
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
};
static HOLLOW_OPS: LayoutOpsApi = LayoutOpsApi {
    struct_size: size_of::<LayoutOpsApi>() as u32,
    reserved: 0,
    layout: RawStr::new("test.keyway/hollow"),
    device: RawStr::new("cpu"),
    shapes: RawStr::EMPTY,
    accepts: None,
    validate: None,
    to_strided: None,
    from_strided: None,
    project: None,
};

static TWIN: DeviceApi = device_api::<Twin<Worse>>();

struct Worse;

impl Own for Worse {
    const PRIORITY: u32 = 50;
    const COUNT: u32 = 1;
    const TITLE: &'static str = "the worse twin";

    fn before_allocation(index: u32, bytes: u64) -> Result<(), Error> {
        match bytes {
            _ if index > 0 => Err(Error::Failed { detail: "there is one twin only".to_string() }),
            PANICS_AT => panic!("told to panic in the allocator"),
            FAILS_AT => Err(Error::Failed { detail: "told to fail in the allocator".to_string() }),
            _ => Ok(()),
        }
    }
}
