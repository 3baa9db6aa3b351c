//! Facts that a device reports about itself, as text. **Experimental**: see `keyway_sdk::abi::extension`.

use super::{DeviceEntry, check, entry_of, extension};
use crate::base::error::{Error, Result};
use crate::base::key::Device;
use crate::base::message::shown;
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::codes::status;
use keyway_sdk::abi::extension::ReportApi;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A fact of a type of device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The subject, in a word or two.
    pub name: String,
    /// The statement.
    pub text: String,
}

unsafe extern "C" fn take(context: *mut c_void, name: RawStr, text: RawStr) {
    // No panic may unwind into the plugin; a fact is skipped if memory is exhausted.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the plugin keeps both texts alive until this returns.
        let (name, text) = unsafe { (name.read(), text.read()) };
        // SAFETY: the context is the list of the function below that gave this one, which waits for the call.
        let facts = unsafe { &mut *context.cast::<Vec<Fact>>() };
        facts.push(Fact { name: shown(&name).into_owned(), text: shown(&text).into_owned() });
    }));
}

/// The facts that a device type reports, whether a device is present or not; empty if it reports none.
///
/// # Errors
/// `Backend`: the plugin failed.
pub fn facts(entry: &'static DeviceEntry) -> Result<Vec<Fact>> {
    let Some(api) = extension::find::<ReportApi>(entry)? else { return Ok(Vec::new()) };
    let mut facts: Vec<Fact> = Vec::new();
    // SAFETY: `take` takes this context, which lives until the call returns.
    let code = unsafe { (api.facts)(Some(take), (&raw mut facts).cast()) };
    check(entry, Device { kind: entry.kind, index: 0 }, "facts", code)?;
    Ok(facts)
}

/// The segments and blocks of a device's memory, as JSON in the format of `keyway_sdk::abi::extension::ReportApi`; `None`
/// if the device does not report them.
///
/// # Errors
/// `NoDevice`, `Backend`.
pub fn memory(device: Device) -> Result<Option<String>> {
    let entry = entry_of(device)?;
    let Some(api) = extension::find::<ReportApi>(entry)? else { return Ok(None) };
    let mut told: Vec<Fact> = Vec::new();
    // SAFETY: as above.
    let code = unsafe { (api.memory)(u32::from(device.index), Some(take), (&raw mut told).cast()) };
    match check(entry, device, "memory", code) {
        Err(Error::Backend { status: status::UNSUPPORTED, .. }) => Ok(None),
        other => other.map(|()| told.pop().map(|fact| fact.text)),
    }
}
