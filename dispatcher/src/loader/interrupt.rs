//! Handles interrupts by the user while a library is probed or loaded; they do not count against the library.
//!
//! How a process ended cannot be determined afterwards. So the process itself reverts its count in the file of
//! [`trying`](super::trying) in a handler for the signals with which users end programs, and then ends as by the signal.
//!
//! Decisions:
//! - only if the program leaves the signal's default action in effect: a program with its own handler continues or ends as
//!   it likes;
//! - a signal that the process sends itself is caused by the library, and is counted; so is a signal after the time limit
//!   of a trial: the user has ended a hang;
//! - SIGKILL cannot be distinguished from a crash, and is counted: two are needed.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The signals with which a user, a terminal or a service manager ends a program.
const SIGNALS: [libc::c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// The watched file: its descriptor, and in the lowest byte the previous digit. Only one file at a time: of several
/// libraries that threads load concurrently only the first is watched.
static WATCHED: AtomicI64 = AtomicI64::new(NONE);
const NONE: i64 = -1;
/// Until then, in milliseconds of [`clock`], an interrupt is the user's impatience.
static PATIENCE: AtomicI64 = AtomicI64::new(0);

/// A guard: while it lives, an interrupt reverts the count in a file. It must be dropped before the file is closed.
pub(super) struct Watch {
    /// The value in [`WATCHED`]; [`NONE`] if nothing is watched.
    watched: i64,
    /// The previous signal actions, where they were changed.
    before: [Option<libc::sigaction>; SIGNALS.len()],
}

impl Watch {
    /// A guard that watches nothing.
    pub(super) fn none() -> Watch {
        Watch { watched: NONE, before: [None; SIGNALS.len()] }
    }

    /// Watches `file`, which begins with a digit that was `count` before, for the time `limit` that the work may take.
    pub(super) fn begin(file: &File, count: u32, limit: Duration) -> Watch {
        let digit = b'0' + u8::try_from(count.min(9)).unwrap_or(9);
        let watched = (i64::from(file.as_raw_fd()) << 8) | i64::from(digit);
        if WATCHED.compare_exchange(NONE, watched, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return Watch::none();
        }
        let limit = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
        PATIENCE.store(clock().saturating_add(limit), Ordering::Release);
        Watch { watched, before: SIGNALS.map(take_over) }
    }

    /// Ends the watch and restores the previous signal handlers.
    pub(super) fn end(&mut self) {
        if self.watched == NONE {
            return;
        }
        self.watched = NONE;
        for (signal, before) in SIGNALS.iter().zip(&self.before) {
            // A handler that the library installed meanwhile stays.
            if let Some(before) =
                before.filter(|_| action(*signal).sa_sigaction == on_signal as *const () as usize)
            {
                // SAFETY: the structure is from the system, and lives until the call returns.
                unsafe { libc::sigaction(*signal, &before, std::ptr::null_mut()) };
            }
        }
        WATCHED.store(NONE, Ordering::Release);
    }
}

/// Milliseconds of a monotonic clock.
fn clock() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is writable until the call returns, which is one that may be in a handler of signals.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}

/// The current action of a signal.
fn action(signal: libc::c_int) -> libc::sigaction {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the structure is writable until the call returns, and zeros are one; nothing is set.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init()
    }
}

/// Handles a signal that has its default action; returns the previous action.
fn take_over(signal: libc::c_int) -> Option<libc::sigaction> {
    let before = action(signal);
    if before.sa_sigaction != libc::SIG_DFL {
        return None;
    }
    let mut own = before;
    own.sa_sigaction = on_signal as *const () as usize;
    own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: the structure lives until the call returns, and the handler as long as the program.
    (unsafe { libc::sigaction(signal, &own, std::ptr::null_mut()) } == 0).then_some(before)
}

/// Reverts the count, and ends the process by the signal's default action. A handler that the library installed later may
/// call this one after the watch has ended.
extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let watched = WATCHED.load(Ordering::Acquire);
    // SAFETY: every called function is async-signal-safe; the system passes a valid `info`; the structure and the byte
    // live until the calls return. The descriptor is open as long as it is in `WATCHED`.
    unsafe {
        let by_itself = !info.is_null() && (*info).si_code <= 0 && (*info).si_pid() == libc::getpid();
        if watched != NONE && !by_itself && clock() < PATIENCE.load(Ordering::Acquire) {
            let digit = (watched & 0xff) as u8;
            libc::pwrite((watched >> 8) as libc::c_int, (&raw const digit).cast(), 1, 0);
        }
        let mut default = std::mem::zeroed::<libc::sigaction>();
        default.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &default, std::ptr::null_mut());
        // The raised signal is delivered when this handler returns.
        libc::raise(signal);
    }
}

#[cfg(all(test, not(any(miri, loom))))]
mod tests {
    use super::*;

    #[test]
    fn signals_are_left_as_they_were() {
        let file = tempfile::tempfile().unwrap();
        let before = SIGNALS.map(|signal| action(signal).sa_sigaction);
        let mut watch = Watch::begin(&file, 1, Duration::from_secs(1));
        assert!(before.iter().zip(SIGNALS).all(|(before, signal)| {
            *before != libc::SIG_DFL || action(signal).sa_sigaction == on_signal as *const () as usize
        }));
        let mut second = Watch::begin(&file, 1, Duration::from_secs(1));
        assert_eq!(second.watched, NONE);
        second.end();
        watch.end();
        assert_eq!(SIGNALS.map(|signal| action(signal).sa_sigaction), before);
        assert_eq!(WATCHED.load(Ordering::Acquire), NONE);
    }
}
