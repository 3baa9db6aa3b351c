//! The plugin that the growth bench copies: in each copy the bench replaces the three digits of `growth000` by another number,
//! at each occurrence in the file. A copy registers ten ops with their kernels, named by its number, and for small numbers also
//! a device with kernels of built-in ops, and a layout.

use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::device::DeviceApi;
use keyway_sdk::abi::layout::LayoutApi;
use keyway_sdk::abi::op::RawOp;
use keyway_sdk::author::{Error, Layout, Op, device_api, layout_api, op};
use keyway_sdk::{plugin, register_kernel};
use keyway_test_twin::{Own, Twin};

/// Copies below this number provide a device.
const DEVICES: usize = 100;
/// Copies below this number provide a layout.
const LAYOUTS: usize = 50;

plugin! {
    name: "keyway.test/growth000",
    version: env!("CARGO_PKG_VERSION"),
    description: "One of many",
    devices: ["cpu"],
    layouts: ["strided"],
    setup: |contents| {
        let number = number()?;
        if number < DEVICES {
            contents.device(&DEVICE);
        }
        if number < LAYOUTS {
            contents.layout(&LAYOUT);
        }
        for op in &OPS {
            contents.op(op);
        }
        Ok(())
    },
}

/// The number of this copy. The text is read at run time, because the compiler knows only the original's.
fn number() -> Result<usize, Error> {
    let name = std::hint::black_box("growth000");
    let digits = name.strip_prefix("growth").and_then(|digits| digits.parse().ok());
    digits.ok_or_else(|| Error::Failed { detail: format!("`{name}` has no number") })
}

struct Device;

impl Own for Device {
    const NAME: &'static str = "test.keyway/growth000";
    const PRIORITY: u32 = 0;
    const COUNT: u32 = 1;
    const TITLE: &'static str = "Host memory";
}

static DEVICE: DeviceApi = device_api::<Twin<Device>>();

struct Blocks;

impl Layout for Blocks {
    const NAME: &'static str = "test.keyway/growth000";
    const COMPONENTS: &'static [RawStr] = &[RawStr::new("values")];
}

static LAYOUT: LayoutApi = layout_api::<Blocks>();

/// An op like any other.
struct Numbered<const N: usize>;

/// Declares the ops, each with a kernel for the CPU.
macro_rules! ops {
    ($($number:literal $name:literal),* $(,)?) => {
        $(
            impl Op for Numbered<$number> {
                const SCHEMA: &'static str = concat!($name, "(Tensor self) -> Tensor");
            }
            register_kernel! {
                op: $name, signature: "T>T", device: "cpu", layout: "strided",
                f32 => |_call| Ok(()),
                f64 => |_call| Ok(()),
            }
        )*
        static OPS: [RawOp; [$($number),*].len()] = [$(op::<Numbered<$number>>()),*];
    };
}

ops! {
    0 "growth000_0",
    1 "growth000_1",
    2 "growth000_2",
    3 "growth000_3",
    4 "growth000_4",
    5 "growth000_5",
    6 "growth000_6",
    7 "growth000_7",
    8 "growth000_8",
    9 "growth000_9",
}

/// Registers kernels for the copy's own device.
macro_rules! on_the_device {
    ($($name:literal $signature:literal),* $(,)?) => {$(
        register_kernel! {
            op: $name, signature: $signature, device: "test.keyway/growth000", layout: "strided",
            f32 => |_call| Ok(()),
        }
    )*};
}

on_the_device! {
    "add" "TTs>T",
    "mul" "TT>T",
    "exp" "T>T",
    "neg" "T>T",
    "mm" "TT>T",
}
