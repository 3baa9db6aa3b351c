//! The message that accompanies a status across the ABI, and the error built from both.

use crate::base::error::Error;
use crate::base::key::Device;
use keyway_sdk::abi::codes::status;
use std::borrow::Cow;
use std::cell::RefCell;

thread_local! {
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
    /// The failed allocation of a host service, as bytes and the detail of its error, while it is the current message.
    static ALLOCATION: RefCell<Option<(u64, String)>> = const { RefCell::new(None) };
}

/// Stores the message for the status that a plugin is about to return on this thread.
pub(crate) fn set_message(text: &str) {
    ALLOCATION.set(None);
    MESSAGE.with_borrow_mut(|message| {
        message.clear();
        message.push_str(text);
    });
}

/// Whether a terminal interprets a character instead of displaying it: control characters, and characters that change the
/// direction of text.
pub(crate) fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A plugin's text, safe for a terminal: line breaks and tabs are preserved, other control characters are replaced by
/// U+FFFD.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| is_obeyed(c) && c != '\n' && c != '\t';
    if text.contains(obeyed) { text.replace(obeyed, "\u{fffd}").into() } else { text.into() }
}

/// Stores the error of a host service for the plugin that called it, which may return its status.
pub(crate) fn set_error(error: &Error) {
    set_message(&error.to_string());
    if let Error::OutOfMemory { requested, detail, .. } = error {
        ALLOCATION.set(Some((*requested, detail.clone())));
    }
}

/// Takes the message of the last plugin call on this thread.
pub fn take_message() -> String {
    MESSAGE.with_borrow_mut(std::mem::take)
}

/// Converts a plugin's status to an error.
#[cold]
pub(crate) fn failure(op: &'static str, plugin: &'static str, device: Device, code: i32) -> Error {
    let (allocation, message) = (ALLOCATION.take(), take_message());
    match code {
        status::OUT_OF_MEMORY => match allocation {
            Some((requested, detail)) => Error::OutOfMemory { device, requested, detail },
            None => out_of_memory(device, message),
        },
        status::INVALID_ARGUMENT if !message.is_empty() => {
            // A plugin may forward the message of its own call of the same op.
            let inner = message.as_str();
            // The plugin is named once, even if it called an op of another plugin.
            let inner = inner.rsplit_once(" (found by backend `").filter(|(_, who)| who.ends_with("`)"));
            let inner = inner.map_or(message.as_str(), |(inner, _)| inner);
            let inner = inner.strip_prefix(op).and_then(|m| m.strip_prefix(": ")).unwrap_or(inner);
            let message = inner.to_string();
            Error::Rejected { op, plugin, message }
        }
        _ => Error::Backend {
            op,
            plugin,
            status: code,
            message: if message.is_empty() { format!("status {code} without a message") } else { message },
        },
    }
}

/// Extracts the requested size from the message, in the wording of this host or of the SDK.
fn out_of_memory(device: Device, message: String) -> Error {
    let before = message.split_once(" bytes").map_or("", |(before, _)| before);
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    match digits.parse() {
        Ok(requested) => {
            // A detail that begins like this error is redundant.
            let detail = if message.starts_with("out of memory") { String::new() } else { message };
            Error::OutOfMemory { device, requested, detail }
        }
        Err(_) => Error::OutOfMemory { device, requested: 0, detail: message },
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

    fn text(code: i32, message: &str) -> String {
        set_message(message);
        failure("mm", "example", Device::CPU, code).to_string()
    }

    #[test]
    fn out_of_memory_reports_the_requested_bytes() {
        let sdk = keyway_sdk::author::Error::OutOfMemory { requested: 4096, available: 7 }.to_string();
        let expected = "out of memory on cpu: 4096 bytes were asked for; free tensors, or use smaller ones";
        assert_eq!(text(status::OUT_OF_MEMORY, &sdk), expected);
        // The host's message to the kernel that called it.
        assert_eq!(text(status::OUT_OF_MEMORY, expected), expected);
        assert!(
            text(status::OUT_OF_MEMORY, "12 bytes for tables")
                .contains("12 bytes were asked for (12 bytes for tables)")
        );
        assert!(text(status::OUT_OF_MEMORY, "no pages").contains("cpu: no pages;"));
        assert!(!text(status::OUT_OF_MEMORY, "").contains("0 bytes"));
    }

    #[test]
    fn a_wrong_argument_is_not_the_backends_failure() {
        let text = text(status::INVALID_ARGUMENT, "argument `index`: expected indices in 0..2, got index 2");
        assert_eq!(
            text,
            "mm: argument `index`: expected indices in 0..2, got index 2 (found by backend `example`)"
        );
    }
}
