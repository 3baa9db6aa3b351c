//! Whether the environment may be trusted.

use std::path::PathBuf;

/// Whether this process has more rights than the user who started it.
pub fn is_privileged() -> bool {
    // SAFETY: these calls take no pointers and cannot fail.
    let raised = unsafe { libc::geteuid() != libc::getuid() || libc::getegid() != libc::getgid() };
    #[cfg(target_os = "linux")]
    // SAFETY: getauxval takes no pointers; an unknown entry returns 0.
    let raised = raised || unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    raised
}

/// The folder in `variable`, otherwise `fallback` below the user's home; `None` in a privileged process.
pub(super) fn home_folder(variable: &str, fallback: &str) -> Option<PathBuf> {
    if is_privileged() {
        return None;
    }
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(fallback)))
}
