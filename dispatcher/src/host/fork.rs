//! Notifies [`crate::base::fork`] of forks of the process.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};

/// The descriptor of [`keep_from_forks`]; -1 if there is none.
static KEPT: AtomicI32 = AtomicI32::new(-1);

/// Makes `file` the standard error of each process that is forked from now on, so that a helper of a plugin, which may
/// outlive the program, does not hold a pipe open that others read to its end. A later file replaces an earlier one.
pub fn keep_from_forks(file: &'static File) {
    watch();
    KEPT.store(file.as_raw_fd(), Ordering::Release);
}

/// Registers the fork handlers, once.
pub(crate) fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        crate::base::fork::protect(crate::call::ledger::held);
        #[cfg(unix)]
        {
            // SAFETY: the handlers are functions of this program, which stays loaded; on failure nothing is registered.
            let code = unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
            if code != 0 {
                crate::base::log::warn(&format!(
                    "forks of this process are not noticed: {}; do not use tensors in a forked child",
                    std::io::Error::from_raw_os_error(code)
                ));
            }
        }
    });
}

#[cfg(unix)]
extern "C" fn prepare() {
    crate::base::fork::prepare();
}

#[cfg(unix)]
extern "C" fn in_parent() {
    crate::base::fork::in_parent();
}

#[cfg(unix)]
extern "C" fn in_child() {
    crate::base::fork::in_child();
    let kept = KEPT.load(Ordering::Acquire);
    if kept >= 0 {
        // SAFETY: the descriptor is never closed and stays writable. Without a standard error nothing changes.
        unsafe {
            if libc::dup2(2, kept) == kept {
                libc::fcntl(kept, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
    }
}
