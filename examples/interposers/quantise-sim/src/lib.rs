//! An interposer that rounds the operands and the result of products to an int8 grid, to estimate the error of a quantised
//! model. Gradients pass the rounding unchanged (straight-through estimator).
//!
//! It is off until a thread enables it, and acts on the ops in [`QuantiseSim::OPS`] alone. The rounding is an op of the plugin,
//! `fake_quantise`, with one scale for each tensor.

use keyway_sdk::abi::codes::dtype;
use keyway_sdk::abi::op::RawOp;
use keyway_sdk::author::{
    Arg, Argument, Call, Error, Form, Interposed, Interposer, Op, Real, Tensor, call_op, op,
};
use std::cell::Cell;

struct QuantiseSim;

thread_local! {
    /// Whether this thread is inside a product that was already rounded: `linear` calls `mm`, for example.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

impl Interposer for QuantiseSim {
    const NAME: &'static str = "quantise-sim";
    const OPS: &'static [&'static str] = &["mm", "bmm", "addmm", "baddbmm", "linear", "matmul", "conv*"];
    const DEFAULT_ON: bool = false;

    fn run(call: &mut Interposed<'_>) -> Result<(), Error> {
        if call.in_backward() || call.form() != Form::New || INSIDE.get() {
            return call.run_next();
        }
        for index in 0..call.n_args() {
            // A bias has one dimension and is added after the product, in full precision.
            if let Argument::Tensor(t) = call.argument(index)?
                && is_rounded(&t)
            {
                let rounded = call_op("fake_quantise", &[Arg::Tensor(t)])?;
                call.set_argument(index, Arg::Owned(&rounded[0]))?;
            }
        }
        INSIDE.set(true);
        let result = call.run_next();
        INSIDE.set(false);
        result?;
        for index in 0..call.output_count().unwrap_or(0) {
            let output = call.output(index)?;
            if is_rounded(&output) {
                let rounded = call_op("fake_quantise", &[Arg::Tensor(output)])?.remove(0);
                call.set_output(index, rounded)?;
            }
        }
        Ok(())
    }
}

fn is_rounded(tensor: &Tensor<'_>) -> bool {
    matches!(tensor.dtype(), dtype::F32 | dtype::F64) && tensor.ndim() >= 2
}

/// Rounds to `scale * -127..=127`, with the scale for the largest magnitude.
struct FakeQuantise;

impl Op for FakeQuantise {
    const SCHEMA: &'static str = "fake_quantise(Tensor self) -> Tensor";
    const BACKWARD: &'static str = "fake_quantise_backward";
    // The gradient passes unchanged, whatever the input and the output were.
    const SAVES: u32 = 0;
    const SAVES_OUTPUTS: u32 = 0;
}

/// The gradient, unchanged.
struct FakeQuantiseBackward;

impl Op for FakeQuantiseBackward {
    const SCHEMA: &'static str = "fake_quantise_backward(Tensor grad) -> Tensor";
}

static FORWARD: RawOp = op::<FakeQuantise>();
static BACKWARD: RawOp = op::<FakeQuantiseBackward>();

fn fake_quantise<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let x = call.view::<T>(0)?;
    let largest = x.iter().fold(0.0f64, |most, v| most.max(v.to_f64().abs()));
    let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
    call.out::<T>(0)?.assign(x.iter().map(|v| T::from_f64((v.to_f64() / scale).round() * scale)));
    Ok(())
}

fn fake_quantise_backward<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    call.out::<T>(0)?.assign(call.view::<T>(0)?.iter());
    Ok(())
}

keyway_sdk::register_kernel! {
    op: "fake_quantise", signature: "T>T", device: "cpu", layout: "strided",
    f32 => fake_quantise::<f32>,
    f64 => fake_quantise::<f64>,
}
keyway_sdk::register_kernel! {
    op: "fake_quantise_backward", signature: "T>T", device: "cpu", layout: "strided",
    f32 => fake_quantise_backward::<f32>,
    f64 => fake_quantise_backward::<f64>,
}
keyway_sdk::register_interposer!(QuantiseSim);

keyway_sdk::plugin! {
    name: "example.org/quantise-sim",
    version: env!("CARGO_PKG_VERSION"),
    description: "Simulates int8 arithmetic in products",
    devices: ["cpu"],
    layouts: ["strided"],
    setup: |contents| {
        contents.op(&FORWARD).op(&BACKWARD);
        Ok(())
    },
}
