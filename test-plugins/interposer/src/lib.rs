//! A plugin that sees every call: it counts calls by op, and can inject failures.
//!
//! It is told what to do through ops of its own, which a test calls like any other:
//! - `interposer_count(Tensor like, str op)` gives the number of calls of an op so far, as an i64 of no
//!   dimensions;
//! - `interposer_break(Tensor like, str op, int mode)` makes calls of an op end otherwise: 1 fails before the call, 2 fails
//!   after it, 3 does not run it and says that all is well, 4 panics, 0 is as usual. It gives one element, 0.
//!
//! It is also a second owner of the device `test.keyway/twin`, of higher priority than that of
//! `keyway.test/faulty`.

use keyway_sdk::abi::codes::dtype;
use keyway_sdk::abi::device::DeviceApi;
use keyway_sdk::abi::op::{RawInterposer, RawOp};
use keyway_sdk::author::{Call, Error, Interposer, Next, Op, RuleCall, device_api, interposer, op};
use keyway_sdk::{plugin, register_kernel};
use keyway_test_twin::{Own, Twin};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard};

plugin! {
    name: "keyway.test/interposer",
    version: env!("CARGO_PKG_VERSION"),
    description: "Sees every call",
    devices: ["test.keyway/twin"],
    setup: |contents| {
        contents.interposer(&WATCH).device(&TWIN).op(&COUNT).op(&BREAK);
        Ok(())
    },
}

static WATCH: RawInterposer = interposer::<Watch>();
static COUNT: RawOp = op::<Count>();
static BREAK: RawOp = op::<Break>();
static TWIN: DeviceApi = device_api::<Twin<Better>>();

type PerOp = HashMap<String, i64>;
static COUNTS: LazyLock<Mutex<PerOp>> = LazyLock::new(Mutex::default);
static MODES: LazyLock<Mutex<PerOp>> = LazyLock::new(Mutex::default);

fn locked(which: &'static LazyLock<Mutex<PerOp>>) -> MutexGuard<'static, PerOp> {
    which.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

struct Watch;

impl Interposer for Watch {
    const NAME: &'static str = "watch";

    fn run(op: &str, _call: &Call<'_>, next: Next) -> Result<(), Error> {
        *locked(&COUNTS).entry(op.to_string()).or_default() += 1;
        let mode = locked(&MODES).get(op).copied().unwrap_or(0);
        let told = |when: &str| Err(Error::Failed { detail: format!("told to fail {when} {op}") });
        match mode {
            1 => told("before"),
            2 => {
                next.run()?;
                told("after")
            }
            3 => Ok(()),
            4 => panic!("told to panic at {op}"),
            _ => next.run(),
        }
    }
}

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
// Another signature than the op has in the tests: the host must leave it out.
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
