//! Small files next to libraries and in the user's folders: records of hashes, of trials, preferences.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// The maximum size of such a file in bytes; a larger one was not written by this project.
const MAX_BYTES: u64 = 16 << 20;

/// Reads a small regular file. A pipe or a device is an error and never blocks.
///
/// # Errors
/// The system's error; `InvalidData` for a file that is not regular, or too large.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    open(path).map(|(bytes, _)| bytes)
}

/// Reads a file as [`read`], and refuses one that users other than its owner may write.
pub(super) fn read_private(path: &Path) -> io::Result<Vec<u8>> {
    let (bytes, mode) = open(path)?;
    if mode & 0o022 != 0 {
        let what = format!("others than its owner may write it (mode {:04o})", mode & 0o7777);
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    Ok(bytes)
}

fn open(path: &Path) -> io::Result<(Vec<u8>, u32)> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC)
        .open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no regular file"));
    }
    let mut bytes = Vec::new();
    let mut whole = file.take(MAX_BYTES + 1);
    whole.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it is larger than {MAX_BYTES} bytes"),
        ));
    }
    Ok((bytes, meta.mode()))
}

/// Creates the folder of a file if it does not exist.
pub(super) fn make_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)
}

/// Writes a file atomically: concurrent readers get the old content or the new. The folder is created if needed; only
/// the owner may write the file.
///
/// # Errors
/// The system's error.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    make_folder_of(path)?;
    // Two processes or threads may write the same file concurrently, so each has its own temporary file.
    let draft =
        path.with_extension(format!("{}-{}.tmp", std::process::id(), DRAFTS.fetch_add(1, Ordering::Relaxed)));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(&draft)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| std::fs::rename(&draft, path));
    if written.is_err() {
        // The first failure is the one to report.
        let _ = std::fs::remove_file(&draft);
    }
    written
}

/// The maximum time to wait for another program's lock of a folder.
const PATIENCE: Duration = Duration::from_secs(10);

/// A guard: while it lives, this program alone changes a folder.
pub struct Locked(Option<File>);

/// Takes the advisory lock of `folder` against other programs. On a file system without locks it does nothing.
///
/// # Errors
/// A timeout if another program holds the lock too long.
pub fn lock_folder(folder: &Path) -> io::Result<Locked> {
    let Ok(file) = File::open(folder) else { return Ok(Locked(None)) };
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Locked(Some(file))),
            Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => {
                let what = format!(
                    "another program has been changing files in {} for {} s; end it and try again",
                    folder.display(),
                    PATIENCE.as_secs()
                );
                return Err(io::Error::new(io::ErrorKind::WouldBlock, what));
            }
            Err(TryLockError::Error(_)) => return Ok(Locked(None)),
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing the file does the same, unless a forked child has a copy of the descriptor.
        let _ = self.0.as_ref().map(File::unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_devices_and_folders_are_errors_and_do_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
        // SAFETY: the path is a C string that lives until the call returns.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        for path in [pipe.as_path(), Path::new("/dev/zero"), folder.path()] {
            assert_eq!(read(path).unwrap_err().kind(), io::ErrorKind::InvalidData, "{}", path.display());
        }
        assert_eq!(read(&folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_is_replaced_whole_and_leaves_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b.json");
        for text in ["one", "two"] {
            write(&path, text.as_bytes()).unwrap();
            assert_eq!(read_private(&path).unwrap(), text.as_bytes());
        }
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        assert_eq!(read_private(&path).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
