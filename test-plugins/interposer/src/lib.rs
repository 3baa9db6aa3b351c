//! A plugin with interposers: it counts calls by op, and can inject failures.
//!
//! It is controlled by its own ops, which a test calls like any other:
//! - `interposer_count(Tensor like, str op)` returns the number of calls of an op so far, as a 0-d i64;
//! - `interposer_break(Tensor like, str op, int mode)` changes the outcome of calls of an op: 1 fails before the call, 2
//!   fails after it, 3 skips it and returns success, 4 panics, 0 is normal. It returns one element, 0. The op name
//!   `meddler` sets the mode of the second interposer, which is off until a thread switches it on.
//!
//! With `KEYWAY_FAULT` the first interposer, which is on by default, modifies values that it should only read, for the
//! conformance suite to detect.
//!
//! It is also a second owner of the device `test.keyway/twin`, with a higher priority than `keyway.test/faulty`.

use keyway_sdk::abi::codes::dtype;
use keyway_sdk::abi::device::DeviceApi;
use keyway_sdk::abi::op::RawOp;
use keyway_sdk::author::{
    Arg, Call, Element, Error, Form, Interposed, Interposer, Op, OwnedTensor, RuleCall, call_op, device_api,
    new_host_tensor, op,
};
use keyway_sdk::{plugin, register_interposer, register_kernel};
use keyway_test_faults::{self as faults, Fault};
use keyway_test_twin::{Own, Twin};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard};

plugin! {
    name: "keyway.test/interposer",
    version: env!("CARGO_PKG_VERSION"),
    description: "Sees every call",
    devices: ["test.keyway/twin"],
    setup: |contents| {
        faults::announce(FAULTS).map_err(|detail| Error::Failed { detail })?;
        contents.device(&TWIN).op(&COUNT).op(&BREAK);
        Ok(())
    },
}

/// The faults of an interposer that the suite must detect.
const FAULTS: [Fault; 3] = [
    Fault::of_families("results_halved", &["interposers"], "results of `exp` are halved"),
    Fault::of_families(
        "large_results_halved",
        &["interposers"],
        "results of `mm` of more than 1,000 elements are halved",
    ),
    Fault::of_families(
        "gradients_halved",
        &["interposers"],
        "results of `mul` are halved in backward passes",
    ),
];

static COUNT: RawOp = op::<Count>();
static BREAK: RawOp = op::<Break>();
static TWIN: DeviceApi = device_api::<Twin<Better>>();

type PerOp = HashMap<String, i64>;
static COUNTS: LazyLock<Mutex<PerOp>> = LazyLock::new(Mutex::default);
static MODES: LazyLock<Mutex<PerOp>> = LazyLock::new(Mutex::default);

fn locked(which: &'static LazyLock<Mutex<PerOp>>) -> MutexGuard<'static, PerOp> {
    which.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn counted(key: &str) {
    *locked(&COUNTS).entry(key.to_string()).or_default() += 1;
}

fn mode_of(op: &str) -> i64 {
    locked(&MODES).get(op).copied().unwrap_or(0)
}

thread_local! {
    /// Whether this thread is inside a call that `watch` runs.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

struct Watch;

impl Interposer for Watch {
    const NAME: &'static str = "watch";

    fn run(call: &mut Interposed<'_>) -> Result<(), Error> {
        let op = call.op();
        counted(op);
        counted(&format!("{op} at depth {}", call.depth()));
        if call.in_backward() {
            counted(&format!("{op} in backward"));
        }
        let told = |when: &str| Err(Error::Failed { detail: format!("told to fail {when} {op}") });
        match mode_of(op) {
            1 => told("before"),
            2 => {
                call.run_next()?;
                told("after")
            }
            3 => Ok(()),
            4 => panic!("told to panic at {op}"),
            _ => {
                let outside = INSIDE.replace(true);
                let result = call.run_next();
                INSIDE.set(outside);
                result?;
                if is_halved(call)? { halve(call) } else { Ok(()) }
            }
        }
    }
}

/// Whether the fault at work concerns the result of a call.
fn is_halved(call: &Interposed<'_>) -> Result<bool, Error> {
    let fault = match call.op() {
        "exp" => faults::is("results_halved"),
        "mm" => faults::is("large_results_halved") && call.output(0)?.numel() > 1000,
        "mul" => faults::is("gradients_halved") && call.in_backward(),
        _ => false,
    };
    Ok(fault && call.form() == Form::New && call.output(0)?.dtype() == dtype::F32)
}

fn halve(call: &mut Interposed<'_>) -> Result<(), Error> {
    let made = call.output(0)?;
    let mut half = new_host_tensor::<f32>(made.sizes())?;
    half.view_mut::<f32>()?.assign(made.view::<f32>()?.iter().map(|x| x / 2.0));
    call.set_output(0, half)
}

/// An interposer with permitted and forbidden effects on the calls of some ops.
struct Meddler;

impl Interposer for Meddler {
    const NAME: &'static str = "meddler";
    const OPS: &'static [&'static str] = &["test_no*", "test_composed", "test_missing"];
    const ORDER: i32 = -1;
    const DEFAULT_ON: bool = false;

    fn run(call: &mut Interposed<'_>) -> Result<(), Error> {
        counted(if INSIDE.get() { "meddler inside watch" } else { "meddler" });
        let ones = |sizes: &[i64]| ones::<f32>(sizes);
        let sizes = call.tensor(0)?.sizes().to_vec();
        match mode_of("meddler") {
            1 => {
                call.run_next()?;
                call.set_output(0, ones(&sizes)?)
            }
            2 => {
                call.run_next()?;
                call.set_output(0, ones(&[7])?)
            }
            3 => {
                call.run_next()?;
                call.set_output(0, crate::ones::<f64>(&sizes)?)
            }
            4 => {
                call.run_next()?;
                call.set_output(1, ones(&sizes)?)
            }
            5 => {
                call.run_next()?;
                call.run_next()
            }
            6 => call.set_output(0, ones(&sizes)?),
            7 => call.set_output(0, ones(&[7])?),
            8 => {
                call.set_argument(0, Arg::Owned(&ones(&sizes)?))?;
                call.run_next()
            }
            9 => {
                call.set_argument(0, Arg::Str("no tensor"))?;
                call.run_next()
            }
            10 => {
                call.set_argument(3, Arg::Int(1))?;
                call.run_next()
            }
            11 => {
                call.run_next()?;
                call.set_argument(0, Arg::Owned(&ones(&sizes)?))
            }
            12 => {
                call.run_next()?;
                // Ignores the result: the host does not.
                let _ = call.run_next();
                Ok(())
            }
            13 => call.output(0).map(|_| ()),
            14 => {
                // Replaces the error of the inner call by a result.
                let _ = call.run_next();
                call.set_output(0, ones(&sizes)?)
            }
            15 => {
                // The interposer is not called for an op that it calls itself.
                call_op("test_nothing", &[Arg::Tensor(call.tensor(0)?)])?;
                call.run_next()
            }
            _ => call.run_next(),
        }
    }
}

fn ones<T: Element>(sizes: &[i64]) -> Result<OwnedTensor, Error> {
    let mut tensor = new_host_tensor::<T>(sizes)?;
    tensor.view_mut::<T>()?.assign(std::iter::repeat(T::from_f64(1.0)));
    Ok(tensor)
}

register_interposer!(Watch);
register_interposer!(Meddler);

struct Count;
struct Break;

impl Op for Count {
    const SCHEMA: &'static str = "interposer_count(Tensor like, str op) -> Tensor";
    fn rule(call: &RuleCall<'_>) -> Result<(), Error> {
        call.state(0, dtype::I64, &[])
    }
}

impl Op for Break {
    const SCHEMA: &'static str = "interposer_break(Tensor like, str op, int mode) -> Tensor";
    fn rule(call: &RuleCall<'_>) -> Result<(), Error> {
        call.state(0, dtype::I64, &[])
    }
}

fn count(call: &Call) -> Result<(), Error> {
    let count = locked(&COUNTS).get(call.str(1)?).copied().unwrap_or(0);
    call.out::<i64>(0)?.set(&[], count);
    Ok(())
}

fn set_mode(call: &Call) -> Result<(), Error> {
    locked(&MODES).insert(call.str(1)?.to_string(), call.int(2)?);
    call.out::<i64>(0)?.set(&[], 0);
    Ok(())
}

register_kernel! {
    op: "interposer_count", signature: "TS>T", device: "cpu", layout: "strided",
    f32 => count,
}
register_kernel! {
    op: "interposer_break", signature: "TSi>T", device: "cpu", layout: "strided",
    f32 => set_mode,
}
// A signature that differs from the op's in the tests: the host must not use the kernel.
register_kernel! {
    op: "test_two", signature: "T>T", device: "cpu", layout: "strided",
    f32 => |_call| Ok(()),
}

struct Better;

impl Own for Better {
    const PRIORITY: u32 = 100;
    const COUNT: u32 = 2;
    const TITLE: &'static str = "the better twin";
}
