//! The message that goes with a status across the ABI, and the error made of both.

use crate::base::error::Error;
use crate::base::key::Device;
use keyway_sdk::abi::codes::status;
use std::cell::RefCell;

thread_local! {
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
    /// The allocation of a host service that failed, as bytes and the detail of its error, while the message is of it.
    static ALLOCATION: RefCell<Option<(u64, String)>> = const { RefCell::new(None) };
}

/// Keeps the message that goes with the status which a plugin is about to return on this thread.
pub(crate) fn set_message(text: &str) {
    ALLOCATION.set(None);
    MESSAGE.with_borrow_mut(|message| {
        message.clear();
        message.push_str(text);
    });
}

/// Keeps the error of a host service for the plugin that called it, which may answer with its status.
pub(crate) fn set_error(error: &Error) {
    set_message(&error.to_string());
    if let Error::OutOfMemory { requested, detail, .. } = error {
        ALLOCATION.set(Some((*requested, detail.clone())));
    }
}

/// Takes the message that the last plugin call on this thread left.
pub fn take_message() -> String {
    MESSAGE.with_borrow_mut(std::mem::take)
}

/// Turns a plugin's status into an error.
#[cold]
pub(crate) fn failure(op: &'static str, plugin: &'static str, device: Device, code: i32) -> Error {
    let (allocation, message) = (ALLOCATION.take(), take_message());
    match code {
        status::OUT_OF_MEMORY => {
            let (requested, detail) = allocation.unwrap_or((0, message));
            Error::OutOfMemory { device, requested, detail }
        }
        _ => Error::Backend {
            op,
            plugin,
            status: code,
            message: if message.is_empty() { format!("status {code} without a message") } else { message },
        },
    }
}
