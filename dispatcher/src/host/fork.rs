//! Tells [`crate::base::fork`] of the forks of the process.

use std::sync::Once;

/// Registers the handlers, once.
pub(crate) fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        crate::base::fork::protect(crate::call::ledger::held);
        #[cfg(unix)]
        {
            // SAFETY: the handlers are functions of this program, which stays loaded; a failure registers nothing.
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
}
