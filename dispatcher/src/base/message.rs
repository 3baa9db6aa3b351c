//! The message that goes with a status across the ABI, and the error made of both.

use crate::base::error::Error;
use crate::base::key::Device;
use keyway_sdk::abi::codes::status;
use std::borrow::Cow;
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

/// Whether a terminal obeys a character rather than show it: controls, and what turns the direction of text.
pub(crate) fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A plugin's text, safe to show: line breaks and tabs stay, other characters that a terminal obeys become U+FFFD.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| is_obeyed(c) && c != '\n' && c != '\t';
    if text.contains(obeyed) { text.replace(obeyed, "\u{fffd}").into() } else { text.into() }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_not_shown() {
        assert_eq!(shown("two\n\tlines"), "two\n\tlines");
        assert_eq!(shown("\u{1b}[31mred\u{9b}\u{202e}\r"), "\u{fffd}[31mred\u{fffd}\u{fffd}\u{fffd}");
    }
}
