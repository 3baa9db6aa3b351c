//! Writes beyond the limit on the size of files (`ulimit -f`): an error instead of a signal that ends the process.

/// Makes every write beyond the limit fail with `EFBIG`, in this process and its children. For programs: a library does not
/// change the signals of its program, and uses [`without_file_size_signal`].
pub fn ignore_file_size_signal() {
    // SAFETY: to ignore a signal is no handler, and takes no pointers.
    #[cfg(unix)]
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Runs `work`, in which a write beyond the limit fails with `EFBIG` (`ErrorKind::FileTooLarge`). Otherwise the system
/// sends the thread SIGXFSZ first, which ends the process. The signal is blocked for this thread and during `work` alone,
/// so that handlers of the program are unchanged.
pub fn without_file_size_signal<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(unix)]
    let _blocked = Blocked::new();
    work()
}

#[cfg(unix)]
struct Blocked {
    signal: libc::sigset_t,
    before: libc::sigset_t,
    /// Whether such a signal was already pending, from another sender.
    pending: bool,
}

#[cfg(unix)]
impl Blocked {
    fn new() -> Option<Blocked> {
        // SAFETY: a set of signals is plain integers, which `sigemptyset` and `pthread_sigmask` write; all addresses are of
        // this frame.
        unsafe {
            let (mut signal, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&mut signal);
            libc::sigaddset(&mut signal, libc::SIGXFSZ);
            let pending = is_pending();
            let code = libc::pthread_sigmask(libc::SIG_BLOCK, &signal, &mut before);
            (code == 0).then_some(Blocked { signal, before, pending })
        }
    }
}

#[cfg(unix)]
fn is_pending() -> bool {
    // SAFETY: as in `Blocked::new`.
    unsafe {
        let mut pending = std::mem::zeroed();
        libc::sigpending(&mut pending) == 0 && libc::sigismember(&pending, libc::SIGXFSZ) == 1
    }
}

#[cfg(unix)]
impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the sets were written when this was created.
        unsafe {
            if !self.pending && is_pending() {
                // The signal was sent to this thread, which consumes it before it unblocks signals.
                #[cfg(target_os = "linux")]
                {
                    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
                    libc::sigtimedwait(&self.signal, std::ptr::null_mut(), &at_once);
                }
                #[cfg(not(target_os = "linux"))]
                libc::sigwait(&self.signal, &mut 0);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut());
        }
    }
}
