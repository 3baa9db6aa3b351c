//! Search for the driver, and trust in files as NVIDIA's libraries.

use super::failed;
use keyway_sdk::Error;
use std::ffi::{OsString, c_void};
use std::path::{Path, PathBuf};

/// The environment variable with the absolute path of another driver: for tests, and for drivers in unusual folders.
const VARIABLE: &str = "KEYWAY_CUDA_DRIVER";
/// The driver's name for the system's loader. Not `libcuda.so`, which in a toolkit is a stub for linking.
const NAME: &str = "libcuda.so.1";

/// The value of an environment variable, unless it is empty or this process is privileged.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty() && !is_privileged())
}

/// Whether the environment variable selects another driver than the system's.
pub fn is_named() -> bool {
    variable(VARIABLE).is_some()
}

/// The driver's path or name.
pub fn path() -> Result<PathBuf, Error> {
    match variable(VARIABLE) {
        Some(value) => {
            let path = PathBuf::from(value);
            trust(&path).map_err(|reason| {
                failed(format!("{VARIABLE} names {}, which {reason}; mend it or unset it", path.display()))
            })?;
            Ok(path)
        }
        None => Ok(NAME.into()),
    }
}

/// The path or name of the driver.
pub fn place() -> String {
    match variable(VARIABLE) {
        Some(value) => format!("named by {VARIABLE}: {}", Path::new(&value).display()),
        None => {
            format!(
                "looked for by the system's loader, as {NAME}; {VARIABLE} names another file by its absolute path"
            )
        }
    }
}

/// The file of the library that contains this address.
#[cfg(unix)]
pub fn file_of(address: *const c_void) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address is valid here, and the out-pointer is valid.
    if unsafe { libc::dladdr(address, info.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: it was zeroed, which is a valid value, and then filled in.
    let name = unsafe { info.assume_init() }.dli_fname;
    if name.is_null() {
        return None;
    }
    // SAFETY: the loader's name of a library is NUL-terminated and lives as long as the library.
    let name = unsafe { std::ffi::CStr::from_ptr(name) };
    Path::new(std::ffi::OsStr::from_bytes(name.to_bytes())).canonicalize().ok()
}

/// `None`: not supported on this system.
#[cfg(not(unix))]
pub fn file_of(_address: *const c_void) -> Option<PathBuf> {
    None
}

/// The error if the system has no driver, or the named file does not exist.
pub fn absent(path: &Path, reason: &str) -> Error {
    if path.is_absolute() {
        let path = path.display();
        return failed(format!(
            "{VARIABLE} names {path}, which cannot be loaded: {reason}; mend it or unset it"
        ));
    }
    failed(format!(
        "{} was not found ({reason}); install NVIDIA's driver, 575 or newer, which brings it. No toolkit is needed",
        path.display()
    ))
}

#[cfg(target_os = "linux")]
fn is_privileged() -> bool {
    // SAFETY: the call has integer arguments and results only.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

#[cfg(not(target_os = "linux"))]
fn is_privileged() -> bool {
    true
}

/// Returns an error with the reason, unless the file and its folder are writable by their owner alone, and the owner is
/// this user or root.
#[cfg(unix)]
pub fn trust(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    if !path.is_absolute() {
        return Err("is no absolute path".into());
    }
    // SAFETY: the call takes no arguments.
    let user = unsafe { libc::geteuid() };
    let real = path.canonicalize().map_err(|error| format!("cannot be read: {error}"))?;
    for part in [Some(real.as_path()), real.parent()].into_iter().flatten() {
        let found = part.metadata().map_err(|error| format!("cannot be read: {error}"))?;
        if found.uid() != user && found.uid() != 0 {
            return Err(format!("belongs to another user ({})", part.display()));
        }
        if found.mode() & 0o022 != 0 {
            return Err(format!("others may write ({})", part.display()));
        }
    }
    if real.is_file() { Ok(()) } else { Err("is no file".into()) }
}

/// Always an error: on this system there are no rules for trusting a file.
#[cfg(not(unix))]
pub fn trust(_path: &Path) -> Result<(), String> {
    Err("is not served on this system".into())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_driver_that_others_may_write_is_refused() {
        let folder = std::env::temp_dir().join(format!("keyway-cuda-find-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mode =
            |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        let file = folder.join("libcuda.so.1");
        std::fs::write(&file, "").unwrap();
        mode(&folder, 0o755);
        mode(&file, 0o644);
        assert_eq!(trust(&file), Ok(()));
        mode(&file, 0o666);
        assert!(trust(&file).unwrap_err().contains("others may write"));
        mode(&file, 0o644);
        mode(&folder, 0o777);
        assert!(trust(&file).unwrap_err().contains("others may write"));
        assert!(trust(Path::new("libcuda.so.1")).unwrap_err().contains("absolute"));
        assert!(trust(&folder.join("absent")).unwrap_err().contains("cannot be read"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
