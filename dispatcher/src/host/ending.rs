//! The exit code of the program: a library that calls `exit(0)` must not turn a failure into a success.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

static RUNNING: AtomicBool = AtomicBool::new(false);
/// The process id of the running command, so that a forked child is not mistaken for it.
static PROCESS: AtomicU32 = AtomicU32::new(0);

const MESSAGE: &str = "keyway: error: a backend ended the program before the command was done (it called\n    \
    `exit`); find it with `keyway backend list`, and leave it out with\n    `keyway backend disable NAME`\n";

/// A guard for a running command. While it is alive, a call of `exit` with any status is a failure.
pub struct Running(());

/// Starts a command. Only one may run at a time; the first of several guards that is dropped ends all.
pub fn running() -> Running {
    if PROCESS.swap(std::process::id(), Ordering::Relaxed) == 0 {
        // SAFETY: the function takes no arguments, does not unwind, and lives as long as the program.
        unsafe { libc::atexit(at_exit) };
    }
    RUNNING.store(true, Ordering::Release);
    Running(())
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.store(false, Ordering::Release);
    }
}

/// Ends the program with this exit code, without running the exit handlers of libraries: a destructor that exits must
/// not turn a failure into a success. Standard output is flushed; `atexit` handlers do not run, so a program with its
/// own handlers must do their work first.
pub fn leave(code: u8) -> ! {
    // A failure to flush is ignored: the reader is gone.
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().flush();
    // SAFETY: a null pointer means all streams, whose locks the library of C takes; `_exit` does not return.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(code.into())
    }
}

extern "C" fn at_exit() {
    if !RUNNING.load(Ordering::Acquire) || PROCESS.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    // SAFETY: the pointer is valid for the length; other threads may still run, so nothing is locked or freed.
    unsafe { libc::write(2, MESSAGE.as_ptr().cast(), MESSAGE.len()) };
    // SAFETY: the call does not return.
    unsafe { libc::_exit(1) };
}
