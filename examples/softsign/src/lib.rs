//! A plugin with a new op and its derivative: `softsign(x) = x / (1 + |x|)`.
//!
//! Nothing in Keyway's tree depends on it. Built with `cargo build --release`, the library is copied into a folder
//! that `keyway backend paths` lists; `keyway ops` then lists the op.

use keyway_cpu_loops::prelude::*;
use keyway_sdk::abi::op::RawOp;
use keyway_sdk::author::{Call, Elementwise, Error, Op, Real, op};

/// The forward op.
struct Softsign;

impl Op for Softsign {
    const SCHEMA: &'static str = "softsign(Tensor self) -> Tensor";
    // Promotion, broadcasting, strides, and the in-place and `out=` forms follow from this.
    const ELEMENTWISE: Option<Elementwise> = Some(Elementwise::Float(0b1));
    const BACKWARD: &'static str = "softsign_backward";
    // The backward op reads the input alone.
    const SAVES_OUTPUTS: u32 = 0;
    const SAMPLES: &'static str = r#"[
        {"args": [{"sizes": [2, 3]}]},
        {"args": [{"sizes": [7], "fill": {"distinct": [-9, 9]}}]}
    ]"#;
    const REFERENCE: Option<fn(&Call<'_>) -> Result<(), Error>> = Some(softsign::<f64>);
}

/// Its backward op: the gradient of the output, then the input.
struct SoftsignBackward;

impl Op for SoftsignBackward {
    const SCHEMA: &'static str = "softsign_backward(Tensor grad, Tensor self) -> Tensor";
    const ELEMENTWISE: Option<Elementwise> = Some(Elementwise::Promoted(0b11));
}

static FORWARD: RawOp = op::<Softsign>();
static BACKWARD: RawOp = op::<SoftsignBackward>();

fn softsign<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    call.map1(Cost::Cheap, |x: T| x / (T::ONE + x.abs()))
}

fn softsign_backward<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    call.map2(Cost::Cheap, |grad: T, x: T| {
        let denominator = T::ONE + x.abs();
        grad / (denominator * denominator)
    })
}

keyway_sdk::register_kernel! {
    op: "softsign", signature: "T>T", device: "cpu", layout: "strided",
    f32 => softsign::<f32>,
    f64 => softsign::<f64>,
}

keyway_sdk::register_kernel! {
    op: "softsign_backward", signature: "TT>T", device: "cpu", layout: "strided",
    f32 => softsign_backward::<f32>,
    f64 => softsign_backward::<f64>,
}

keyway_sdk::plugin! {
    name: "example.org/softsign",
    version: env!("CARGO_PKG_VERSION"),
    description: "The softsign activation",
    devices: ["cpu"],
    layouts: ["strided"],
    setup: |contents| {
        contents.op(&FORWARD).op(&BACKWARD);
        Ok(())
    },
}
