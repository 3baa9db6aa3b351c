//! Process-wide state that a library may change while it is loaded, which affects all code in the process.

use crate::loader::floating_point::Control;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsString};
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The limits of a process, with their names in messages.
const LIMITS: [(Resource, &str); 8] = [
    (libc::RLIMIT_FSIZE, "the limit of file sizes"),
    (libc::RLIMIT_CPU, "the limit of processor time"),
    (libc::RLIMIT_AS, "the limit of address space"),
    (libc::RLIMIT_DATA, "the limit of data"),
    (libc::RLIMIT_STACK, "the limit of the stack"),
    (libc::RLIMIT_NOFILE, "the limit of open files"),
    (libc::RLIMIT_NPROC, "the limit of processes and threads"),
    (libc::RLIMIT_MEMLOCK, "the limit of locked memory"),
];

/// The index of the limit of open files.
const FILES: usize = 5;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
type Resource = libc::c_int;

/// Descriptors above this are not checked.
const MAX_FILES: i32 = 256;

/// Signals sent by users and terminals. Signals for faults, profiling and preemption are excluded: runtimes of other
/// languages handle these and forward the others.
const SIGNALS: [libc::c_int; 7] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE, libc::SIGALRM, libc::SIGTERM, libc::SIGCHLD];

/// The state of this process, and of the arithmetic and the signal mask of this thread.
pub(super) struct Surroundings {
    limits: [(libc::rlim_t, libc::rlim_t); LIMITS.len()],
    umask: libc::mode_t,
    folder: Option<PathBuf>,
    arithmetic: Control,
    /// The address of each signal's handler.
    handlers: [libc::sighandler_t; SIGNALS.len()],
    /// The signals that are blocked in this thread.
    blocked: [bool; SIGNALS.len()],
    locale: Option<CString>,
    /// The open files, each with its identity.
    files: Vec<(i32, (u64, u64))>,
    /// Whether another file can be opened.
    can_open: bool,
    timers: Timers,
    /// The nice value.
    nice: libc::c_int,
    environment: BTreeMap<OsString, OsString>,
}

/// Timers that send signals to the process.
struct Timers {
    /// Timers of `setitimer`: whether each is set.
    set: [bool; 3],
    /// Timers of `timer_create`, as the system lists them; `None` if it does not, or if no file can be opened.
    made: Option<Vec<u8>>,
}

impl Timers {
    /// Whether the timers are known to differ.
    fn differ(&self, now: &Timers) -> bool {
        self.set != now.set || self.made.as_ref().zip(now.made.as_ref()).is_some_and(|(a, b)| a != b)
    }
}

const TIMERS: &str = "a timer that sends signals (setitimer, timer_create)";
const USED_UP: &str = "the file descriptors: it has opened all that the limit allows";
/// Prefixes of variables that affect other libraries. A library may set new variables with other names, as runtimes do to
/// detect further copies of themselves.
const OBEYED: [&str; 3] = ["LD_", "GLIBC_", "KEYWAY_"];

impl Surroundings {
    pub(super) fn now() -> Surroundings {
        let file = |fd: i32| Some((fd, identity(fd)?));
        Surroundings {
            limits: LIMITS.map(|(resource, _)| limit(resource)),
            umask: umask(),
            folder: std::env::current_dir().ok(),
            arithmetic: Control::now(),
            handlers: SIGNALS.map(handler),
            blocked: blocked(),
            locale: locale(),
            files: (0..MAX_FILES).filter_map(file).collect(),
            can_open: can_open(),
            timers: timers(),
            nice: nice(),
            environment: std::env::vars_os().collect(),
        }
    }

    /// Changes that may also happen after loading: timers, and file descriptors used up.
    pub(super) fn changed_in_use(&self) -> Option<&'static str> {
        let used_up = (self.can_open && !can_open()).then_some(USED_UP);
        used_up.or_else(|| self.timers.differ(&timers()).then_some(TIMERS))
    }

    /// The list of changes; `None` if there are none. A raised limit is harmless and not a change.
    pub(super) fn changed(&self) -> Option<String> {
        let now = Surroundings::now();
        let lowered = LIMITS.iter().zip(self.limits.iter().zip(now.limits));
        let lowered = lowered.filter(|(_, (before, now))| now.0 < before.0 || now.1 < before.1);
        let mut changed: Vec<&str> = lowered.map(|((_, name), _)| *name).collect();
        let kept = |(name, value): (&OsString, &OsString)| now.environment.get(name) == Some(value);
        let set = |name: &OsString| {
            !self.environment.contains_key(name)
                && OBEYED.iter().any(|begin| name.as_encoded_bytes().starts_with(begin.as_bytes()))
        };
        let is_other_environment = !self.environment.iter().all(kept) || now.environment.keys().any(set);
        let closed = self.files.iter().any(|file| !now.files.contains(file));
        for (is_changed, name) in [
            (self.umask != now.umask, "the rights of new files (umask)"),
            (self.folder != now.folder, "the working directory"),
            (
                self.arithmetic != now.arithmetic,
                "how numbers are rounded (floating-point control, as gcc's -ffast-math sets it; link without it)",
            ),
            (self.handlers != now.handlers, "a signal handler (SIGINT, SIGTERM, SIGPIPE, SIGCHLD, ...)"),
            (self.blocked != now.blocked, "which signals the thread gets (its signal mask)"),
            (self.locale != now.locale, "the locale, and with it how C libraries write numbers"),
            (closed, "an open file that is not its own"),
            // Skipped if a lower limit, which is reported, is the cause.
            (self.can_open && !now.can_open && now.limits[FILES].0 >= self.limits[FILES].0, USED_UP),
            (self.timers.differ(&now.timers), TIMERS),
            (self.nice < now.nice, "the scheduling priority (nice)"),
            (is_other_environment, "an environment variable"),
        ] {
            changed.extend(is_changed.then_some(name));
        }
        (!changed.is_empty()).then(|| changed.join(", "))
    }
}

fn limit(resource: Resource) -> (libc::rlim_t, libc::rlim_t) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is writable until the call returns; a resource that is not known leaves it.
    unsafe { libc::getrlimit(resource, &mut limit) };
    (limit.rlim_cur, limit.rlim_max)
}

/// Reads the mask, which is possible only by setting it; it is restored immediately.
fn umask() -> libc::mode_t {
    // SAFETY: the calls take no pointers and cannot fail.
    unsafe {
        let mask = libc::umask(0o077);
        libc::umask(mask);
        mask
    }
}

fn handler(signal: libc::c_int) -> libc::sighandler_t {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the structure is writable until the call returns, and zeros are one; nothing is set.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction
    }
}

fn timers() -> Timers {
    let is_set = |which| {
        let mut timer = MaybeUninit::<libc::itimerval>::zeroed();
        // SAFETY: the structure is writable until the call returns, and zeros are one that is not set.
        let timer = unsafe {
            libc::getitimer(which, timer.as_mut_ptr());
            timer.assume_init()
        };
        timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0
    };
    Timers {
        set: [is_set(libc::ITIMER_REAL), is_set(libc::ITIMER_VIRTUAL), is_set(libc::ITIMER_PROF)],
        made: std::fs::read("/proc/self/timers").ok(),
    }
}

fn nice() -> libc::c_int {
    // SAFETY: the call takes no pointers. A value that cannot be read is -1 each time.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

fn blocked() -> [bool; SIGNALS.len()] {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the set is writable until the call returns, and zeros are one; nothing is set.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), set.as_mut_ptr()) };
    // SAFETY: the set was written, or is the one of zeros.
    SIGNALS.map(|signal| unsafe { libc::sigismember(set.as_ptr(), signal) } == 1)
}

/// Whether another file can be opened.
fn can_open() -> bool {
    // SAFETY: the calls take no pointers; the descriptor that is closed is this function's own. A missing first descriptor
    // is reported.
    unsafe {
        let copy = libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 0);
        if copy >= 0 {
            return libc::close(copy) == 0;
        }
    }
    // A limit that is as low as the first requested descriptor is an invalid argument.
    !matches!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EMFILE | libc::EINVAL))
}

/// The locale of the whole process.
fn locale() -> Option<CString> {
    // SAFETY: the call with a null pointer changes nothing; the returned string is owned by the system and copied
    // before the library can set another: only a trial's process looks, from the thread that loads the library.
    unsafe {
        let name = libc::setlocale(libc::LC_ALL, std::ptr::null());
        (!name.is_null()).then(|| CStr::from_ptr(name).to_owned())
    }
}

/// The identity (device and inode) of the file of an open descriptor.
fn identity(fd: i32) -> Option<(u64, u64)> {
    // SAFETY: the call takes no pointers; a descriptor that is not open is an error.
    if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: the descriptor is open, and the file that borrows it is never dropped.
    let file =
        std::mem::ManuallyDrop::new(unsafe { <std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(fd) });
    let meta = file.metadata().ok()?;
    Some((meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_untouched_process_has_not_changed() {
        // The other fields are those of the process, which other tests share.
        let before = Surroundings::now();
        assert!(before.limits.iter().all(|(soft, hard)| soft <= hard));
        assert!(before.files.iter().any(|(fd, _)| *fd == 2) && before.folder.is_some());
        assert_eq!(before.arithmetic, Control::now());
        assert!(before.locale.is_some() && before.can_open);
        assert_eq!(LIMITS[FILES].0, libc::RLIMIT_NOFILE);
    }
}
