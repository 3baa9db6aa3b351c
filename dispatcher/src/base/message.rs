//! The message that goes with a status across the ABI, and the error made of both.

use crate::base::error::Error;
use crate::base::key::Device;
use keyway_sdk::abi::codes::status;
use std::cell::RefCell;

thread_local! {
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps the message that goes with the status which a plugin is about to return on this thread.
pub(crate) fn set_message(text: &str) {
    MESSAGE.with_borrow_mut(|message| {
        message.clear();
        message.push_str(text);
    });
}

/// Takes the message that the last plugin call on this thread left.
pub fn take_message() -> String {
    MESSAGE.with_borrow_mut(std::mem::take)
}

/// Turns a plugin's status into an error.
#[cold]
pub(crate) fn failure(op: &'static str, plugin: &'static str, device: Device, code: i32) -> Error {
    let message = take_message();
    match code {
        status::OUT_OF_MEMORY => Error::OutOfMemory { device, requested: 0, detail: message },
        _ => Error::Backend {
            op,
            plugin,
            status: code,
            message: if message.is_empty() { format!("status {code} without a message") } else { message },
        },
    }
}
