//! A plugin with a dtype: `example.org/fp8_e4m3`, the 8-bit float in which quantised networks store weights.
//!
//! Nothing in Keyway's tree depends on it. The plugin defines the conversion of an element to f64 and back, and the promotion
//! of the dtype; with that the host stores, moves, casts, prints, saves and loads such tensors. The ops computed in the dtype
//! itself have kernels here: `add` and `eq`.
//!
//! Built with `cargo build --release`, the library goes into a folder that `keyway backend paths` lists.

mod e4m3;

use e4m3::E4m3;
use keyway_sdk::abi::dtype::DTypeApi;
use keyway_sdk::author::{Call, Category, DType, DTypeNumber, Element, Error, Limits, Plain, dtype_api};

// SAFETY: `E4m3` is one byte, for which every bit pattern is valid; `dtype` is the number of `NAME`.
unsafe impl Element for E4m3 {
    const NAME: &'static str = "example.org/fp8_e4m3";

    fn dtype() -> u16 {
        static NUMBER: DTypeNumber = DTypeNumber::of::<E4m3>();
        NUMBER.get()
    }

    fn from_f64(value: f64) -> Self {
        E4m3::round(value)
    }

    fn to_f64(self) -> f64 {
        self.value()
    }
}

// SAFETY: as above.
unsafe impl Plain for E4m3 {}

impl DType for E4m3 {
    const CATEGORY: Category = Category::Float;
    // With another dtype it promotes as f16, which represents every value of it: with f32 to f32, with i64 to f16.
    const PROMOTES_TO: &'static str = "f16";
    const LIMITS: Option<Limits> = Some(Limits { max: E4m3::MAX, min: -E4m3::MAX, epsilon: 0.125 });
}

static E4M3: DTypeApi = dtype_api::<E4m3>();

/// `self + alpha * other`, computed in f64 and rounded once.
fn add(call: &Call<'_>) -> Result<(), Error> {
    let alpha: f64 = call.scalar(2)?;
    let (a, b) = (call.view::<E4m3>(0)?, call.view::<E4m3>(1)?);
    let sum = |(a, b): (E4m3, E4m3)| E4m3::round(a.value() + alpha * b.value());
    call.out::<E4m3>(0)?.assign(a.iter().zip(b).map(sum));
    Ok(())
}

fn eq(call: &Call<'_>) -> Result<(), Error> {
    let (a, b) = (call.view::<E4m3>(0)?, call.view::<E4m3>(1)?);
    call.out::<bool>(0)?.assign(a.iter().zip(b).map(|(a, b)| a == b));
    Ok(())
}

keyway_sdk::register_kernel! {
    op: "add", signature: "TTs>T", device: "cpu", layout: "strided",
    "example.org/fp8_e4m3" => add,
}

keyway_sdk::register_kernel! {
    op: "eq", signature: "TT>T", device: "cpu", layout: "strided",
    "example.org/fp8_e4m3" => eq,
}

keyway_sdk::plugin! {
    name: "example.org/fp8",
    version: env!("CARGO_PKG_VERSION"),
    description: "The dtype fp8 e4m3",
    devices: ["cpu"],
    layouts: ["strided"],
    setup: |contents| {
        contents.dtype(&E4M3);
        Ok(())
    },
}
