//! Strings of plugins.

use keyway_sdk::abi::RawStr;
use std::borrow::Cow;

/// A string of the plugin, which stays mapped for the life of the process; copied only if it is not UTF-8.
pub(super) fn text(raw: RawStr) -> &'static str {
    // SAFETY: the plugin's strings are static.
    match unsafe { raw.read() } {
        Cow::Borrowed(text) => text,
        Cow::Owned(text) => String::leak(text),
    }
}
