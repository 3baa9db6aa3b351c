//! Interposers of plugins, as handlers of functionality keys.

use crate::base::error::{Error, Result};
use crate::base::key::{Device, KeySet};
use crate::base::message::{failure, set_message};
use crate::base::plugin::PluginEntry;
use crate::call::{CallContext, Marshalling, with_call};
use crate::op::{Arg, Call, Outputs};
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::codes::status;
use keyway_sdk::abi::op::RawInterposer;
use std::ffi::c_void;

struct Next<'a> {
    call: &'a Call<'a>,
    below: KeySet,
    result: Option<Result<Outputs>>,
}

unsafe extern "C" fn next(context: *mut c_void) -> i32 {
    // SAFETY: the plugin passes the context that it was given for this call, which lives in `run` below.
    let next = unsafe { &mut *context.cast::<Next<'_>>() };
    if next.result.is_some() {
        set_message("the interposer ran the call twice");
        return status::INVALID_ARGUMENT;
    }
    let result = crate::call::redispatch(next.call, next.below);
    let code = if result.is_ok() { status::OK } else { status::FAILED };
    if let Err(error) = &result {
        set_message(&error.to_string());
    }
    next.result = Some(result);
    code
}

/// Runs a call through an interposer.
pub(crate) fn run(
    interposer: &'static RawInterposer,
    plugin: &'static PluginEntry,
    call: &Call<'_>,
    below: KeySet,
) -> Result<Outputs> {
    let device = call
        .args
        .values
        .iter()
        .find_map(|arg| if let Arg::Tensor(t) = arg { Some(t.device()) } else { None })
        .unwrap_or(Device::CPU);
    let mut state = Next { call, below, result: None };
    let context: *mut c_void = (&raw mut state).cast();
    let mut made = CallContext::default();
    let code = with_call(call.args.values, Marshalling::AS_IS, &[], 0, device, Some(&mut made), |raw| {
        // SAFETY: `raw` and `context` live until the plugin returns.
        unsafe { (interposer.run)(RawStr::new(call.args.name()), raw, next, context) }
    });
    let code = code.unwrap_or_else(|status| status);
    match (code, state.result) {
        (status::OK, Some(result)) => result,
        (status::OK, None) => Err(Error::Backend {
            op: call.args.name(),
            plugin: plugin.name,
            status: status::FAILED,
            message: "the interposer answered without running the call".to_string(),
        }),
        (_, Some(Err(error))) => Err(error),
        (code, _) => Err(failure(call.args.name(), plugin.name, device, code)),
    }
}
