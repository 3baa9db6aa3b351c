//! An interposer that reports the op which produces the first NaN: an op without NaN in its arguments and with NaN in an
//! output.
//!
//! It observes every op, forward and backward, and is off until a thread enables it:
//!
//! ```ignore
//! let _on = keyway::interposer("nan-guard")?.enter();
//! ```
//!
//! The call fails, or, with `KEYWAY_NAN_GUARD=warn` in the environment, the op is logged and the call continues.

use keyway_sdk::abi::codes::dtype;
use keyway_sdk::author::{
    Arg, Argument, Error, Form, Interposed, Interposer, Level, Tensor, call_op, dtype_name, log,
};
use keyway_sdk::half::{bf16, f16};
use std::cell::Cell;

struct NanGuard;

thread_local! {
    /// Whether an op inside the outermost one has been reported: the outer ones then only propagate it.
    static REPORTED: Cell<bool> = const { Cell::new(false) };
}

impl Interposer for NanGuard {
    const NAME: &'static str = "nan-guard";
    const DEFAULT_ON: bool = false;
    // Below other interposers: it reads an op's results before others change them.
    const ORDER: i32 = -100;

    fn run(call: &mut Interposed<'_>) -> Result<(), Error> {
        // Uninitialized memory may contain NaN.
        if call.op().starts_with("empty") {
            return call.run_next();
        }
        if call.depth() == 0 {
            REPORTED.set(false);
        }
        // An in-place op overwrites its first argument.
        let spoilt = call.form() == Form::InPlace && first_nan(&call.tensor(0)?)?.is_some();
        call.run_next()?;
        if spoilt || REPORTED.get() {
            return Ok(());
        }
        for index in 0..call.output_count().unwrap_or(0) {
            let Some(place) = first_nan(&call.output(index)?)? else { continue };
            if !arguments_hold_nan(call)? {
                return report(&describe(call, index, &place)?);
            }
        }
        Ok(())
    }
}

/// The coordinates of the first NaN of a tensor.
fn first_nan(tensor: &Tensor<'_>) -> Result<Option<Vec<usize>>, Error> {
    for component in tensor.components() {
        if let Some(place) = first_nan(&component)? {
            return Ok(Some(place));
        }
    }
    if tensor.n_components() > 0 {
        return Ok(None);
    }
    // Copied to host memory first if it is on another device.
    if tensor.device() != 0 && is_float(tensor.dtype()) {
        let host = call_op("to_device", &[Arg::Tensor(*tensor), Arg::Str("cpu")])?;
        return host.first().map_or(Ok(None), |host| first_nan(&host.tensor()));
    }
    let flat = match tensor.dtype() {
        dtype::F32 => tensor.view::<f32>()?.iter().position(f32::is_nan),
        dtype::F64 => tensor.view::<f64>()?.iter().position(f64::is_nan),
        dtype::F16 => tensor.view::<f16>()?.iter().position(f16::is_nan),
        dtype::BF16 => tensor.view::<bf16>()?.iter().position(bf16::is_nan),
        _ => None,
    };
    Ok(flat.map(|mut rest| {
        let mut place: Vec<usize> = Vec::new();
        for &size in tensor.sizes().iter().rev() {
            place.push(rest % size as usize);
            rest /= size as usize;
        }
        place.reverse();
        place
    }))
}

fn is_float(code: u16) -> bool {
    matches!(code, dtype::F32 | dtype::F64 | dtype::F16 | dtype::BF16)
}

fn arguments_hold_nan(call: &Interposed<'_>) -> Result<bool, Error> {
    // The first argument of an in-place op holds the result by now; it was checked before the call.
    let first = usize::from(call.form() == Form::InPlace);
    for index in first..call.n_args() {
        let found = match call.argument(index)? {
            Argument::Tensor(t) => first_nan(&t)?.is_some(),
            Argument::Tensors(list) => {
                list.iter().map(first_nan).collect::<Result<Vec<_>, _>>()?.iter().any(Option::is_some)
            }
            Argument::Float(v) => v.is_nan(),
            _ => false,
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

fn text(tensor: &Tensor<'_>) -> String {
    format!("{} {:?}", dtype_name(tensor.dtype()), tensor.sizes())
}

fn describe(call: &Interposed<'_>, index: usize, place: &[usize]) -> Result<String, Error> {
    let arguments = (0..call.n_args())
        .map(|i| {
            Ok(match call.argument(i)? {
                Argument::Tensor(t) => text(&t),
                Argument::Tensors(list) => list.iter().map(text).collect::<Vec<_>>().join(" + "),
                Argument::None => "none".to_string(),
                other => format!("{:?}", other.arg()),
            })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let pass = if call.in_backward() { "backward" } else { "forward" };
    Ok(format!(
        "nan-guard: `{}` made the first NaN ({pass} pass): output {index}, {}, at {place:?}; no argument holds one: {}",
        call.op(),
        text(&call.output(index)?),
        arguments.join(", ")
    ))
}

fn report(message: &str) -> Result<(), Error> {
    REPORTED.set(true);
    if std::env::var("KEYWAY_NAN_GUARD").is_ok_and(|how| how == "warn") {
        log(Level::Warn, message);
        return Ok(());
    }
    Err(Error::Failed { detail: message.to_string() })
}

keyway_sdk::register_interposer!(NanGuard);

keyway_sdk::plugin! {
    name: "example.org/nan-guard",
    version: env!("CARGO_PKG_VERSION"),
    description: "Names the op that makes the first NaN",
}
