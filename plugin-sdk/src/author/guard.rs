//! The panic guard: nothing unwinds across the boundary.

use super::error::Error;
use super::export::host_api;
use crate::abi::RawStr;
use crate::abi::codes::status;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by the first panic in this library; every later call answers `PANICKED` without running.
static POISONED: AtomicBool = AtomicBool::new(false);

fn report(message: &str) {
    if let Some(host) = host_api() {
        // SAFETY: `set_error` copies the bytes before it returns; `message` lives until then.
        unsafe { (host.set_error)(RawStr::borrow(message)) };
    }
}

/// Runs `work`, turning an error or a panic into a status and a message for the host.
pub fn guarded(work: impl FnOnce() -> Result<(), Error>) -> i32 {
    if POISONED.load(Ordering::Relaxed) {
        report("the plugin panicked in an earlier call and is no longer used");
        return status::PANICKED;
    }
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => status::OK,
        Ok(Err(error)) => {
            if !matches!(error, Error::Host { .. }) {
                report(&error.to_string());
            }
            error.status()
        }
        Err(payload) => {
            POISONED.store(true, Ordering::Relaxed);
            let text = payload
                .downcast_ref::<&str>()
                .map(|s| s.to_string())
                .or_else(|| payload.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "a panic without a message".to_string());
            report(&format!("the plugin panicked: {text}"));
            status::PANICKED
        }
    }
}
