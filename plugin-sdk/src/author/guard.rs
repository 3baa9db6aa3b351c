//! The panic guard: nothing unwinds across the boundary.

use super::connection::host_api;
use super::error::Error;
use crate::abi::RawStr;
use crate::abi::codes::status;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by the first panic in this library; every later call returns `PANICKED` without running.
static POISONED: AtomicBool = AtomicBool::new(false);

fn report(message: &str) {
    if let Some(host) = host_api() {
        // SAFETY: `set_error` copies the bytes before it returns; `message` lives until then.
        unsafe { (host.set_error)(RawStr::borrow(message)) };
    }
}

/// Runs `work`, turning an error or a panic into a status and a message for the host.
#[inline]
pub fn guarded(work: impl FnOnce() -> Result<(), Error>) -> i32 {
    if POISONED.load(Ordering::Relaxed) {
        return poisoned();
    }
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => status::OK,
        Ok(Err(error)) => failed(&error),
        Err(payload) => panicked(&*payload),
    }
}

#[cold]
#[inline(never)]
fn poisoned() -> i32 {
    report("the plugin panicked in an earlier call and is no longer used");
    status::PANICKED
}

#[cold]
#[inline(never)]
fn failed(error: &Error) -> i32 {
    if !matches!(error, Error::Host { .. }) {
        report(&error.to_string());
    }
    error.status()
}

#[cold]
#[inline(never)]
fn panicked(payload: &(dyn Any + Send)) -> i32 {
    POISONED.store(true, Ordering::Relaxed);
    let text = payload
        .downcast_ref::<&str>()
        .map(|s| s.to_string())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_string());
    report(&format!("the plugin panicked: {text}"));
    status::PANICKED
}
