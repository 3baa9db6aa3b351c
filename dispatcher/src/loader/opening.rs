//! Detects a library that ends the program while it is loaded, so that the exit code is not success and the message names
//! the library.
//!
//! `exit` in a constructor or a set-up runs the exit handler registered here, in every program that loads libraries. Other
//! ends of the process (`_exit`, a signal) have their own status.

use super::manifest::excerpt;
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The library being opened. It is read where no lock may be taken, so its target is never freed.
static OPENING: AtomicPtr<Opening> = AtomicPtr::new(std::ptr::null_mut());

/// A library that is being opened.
pub(super) struct Opening {
    path: String,
    plugin: String,
    /// The process and thread that open it: forked processes and the program's other threads are not affected.
    by: (u32, libc::pthread_t),
}

impl Opening {
    /// Notes a library until the result is dropped.
    pub(super) fn begin(path: &Path, plugin: &str) -> Noted {
        // Control characters are removed, since the text may reach a terminal.
        let path = excerpt(&path.display().to_string(), libc::PATH_MAX as usize);
        let opening = Opening { path, plugin: plugin.to_string(), by: here() };
        OPENING.store(Box::leak(Box::new(opening)), Ordering::Release);
        Noted
    }
}

fn here() -> (u32, libc::pthread_t) {
    // SAFETY: the function takes no arguments and cannot fail.
    (std::process::id(), unsafe { libc::pthread_self() })
}

/// A guard: while it lives, a library is being opened.
pub(super) struct Noted;

impl Drop for Noted {
    fn drop(&mut self) {
        OPENING.store(std::ptr::null_mut(), Ordering::Release);
    }
}

/// Registers the exit handler that turns an `exit` of a library being opened into a failure that names it. A trial does not
/// register it: its exit code is reported.
pub(super) fn guard() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the function takes no arguments, does not unwind, and exists as long as the program. If the system cannot
        // register another handler, there is none.
        let _ = unsafe { libc::atexit(at_exit) };
    });
}

extern "C" fn at_exit() {
    // SAFETY: null, or leaked.
    let Some(opening) = (unsafe { OPENING.load(Ordering::Acquire).as_ref() }) else { return };
    if opening.by != here() {
        return;
    }
    let parts = [
        "keyway: error: ",
        &opening.path,
        "\n    ended the program while it was loaded (it called `exit`); leave it out with\n    `keyway backend disable ",
        &opening.plugin,
        "`, or remove the file\n",
    ];
    // SAFETY: the pointer is valid for the length; other threads may still run, so nothing is locked or freed. The last
    // call does not return.
    unsafe {
        for text in parts {
            libc::write(2, text.as_ptr().cast(), text.len());
        }
        libc::_exit(1)
    }
}
