//! Atomic replacement of files: the old content remains until the new one is on the disk.

use keyway_dispatcher::host::without_file_size_signal;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Size of the write buffer in bytes.
const BUFFER: usize = 1 << 16;

/// Writes a new file beside `path`, syncs it to the disk and renames it over `path`. On failure `path` is unchanged, and the new
/// file is removed. A device or a pipe is written to directly. A link is followed, so that it remains a link; permissions of an
/// old file are preserved.
///
/// The new file is locked while it is written. An unlocked one was left by a killed process; the next call for the same folder
/// removes it. A limit on the size of files (`ulimit -f`) is an error like that of a full disk: the signal SIGXFSZ is blocked on
/// this thread during the call.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::io::replace;
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("notes.txt");
/// replace(&path, |file| file.write_all(b"old")).unwrap();
/// // A write that fails half-way leaves the old file.
/// let failed = replace(&path, |file| {
///     file.write_all(b"ne")?;
///     Err(std::io::Error::other("interrupted"))
/// });
/// assert!(failed.is_err());
/// assert_eq!(std::fs::read(&path).unwrap(), b"old");
/// # Ok(()) }
/// ```
///
/// # Errors
/// Errors of `write` or of the system.
pub fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    without_file_size_signal(|| replace_file(path, write))
}

fn replace_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let target = match std::fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_path_buf(),
        Err(error) => return Err(error),
    };
    let folder = folder_of(&target);
    let old = std::fs::metadata(&target).ok();
    match &old {
        Some(old) if old.is_dir() => return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a folder")),
        // A device or a pipe has no old content to preserve, and must not be replaced by a rename.
        Some(old) if !old.is_file() => {
            let mut file = std::fs::OpenOptions::new().write(true).open(&target)?;
            write(&mut file)?;
            return file.flush();
        }
        _ => {}
    }
    remove_left(&folder);
    let fresh = locked_file_in(&folder)?;
    if let Some(old) = &old {
        fresh.as_file().set_permissions(old.permissions())?;
    }
    let mut buffered = BufWriter::with_capacity(BUFFER, fresh.as_file());
    write(&mut buffered)?;
    buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
    fresh.as_file().sync_all()?;
    fresh.persist(&target).map_err(|error| error.error)?;
    sync_folder(&folder);
    Ok(())
}

/// Names of files that are being written.
const PREFIX: &str = ".keyway-";
const SUFFIX: &str = ".tmp";

/// A new file, locked.
fn locked_file_in(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The permissions of a plain new file; the system applies the process's umask.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    loop {
        let fresh = builder.tempfile_in(folder)?;
        // A file system without locks has no files removed either.
        if fresh.as_file().lock().is_err() || !was_removed(&fresh) {
            return Ok(fresh);
        }
        // Another process took it for a leftover before it was locked, and removed it.
    }
}

fn was_removed(file: &NamedTempFile) -> bool {
    std::fs::symlink_metadata(file.path()).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Removes the files that killed processes left in a folder. A failed removal is not an error of the save.
fn remove_left(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // Only a plain file is opened: opening a pipe would block indefinitely.
        if !name.starts_with(PREFIX)
            || !name.ends_with(SUFFIX)
            || !entry.file_type().is_ok_and(|kind| kind.is_file())
        {
            continue;
        }
        // Removed while locked, so that its creator, who waits for the lock, detects the removal.
        if let Ok(file) = File::options().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn folder_of(target: &Path) -> PathBuf {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Syncs the rename itself to the disk. The content is already on the disk and the name refers to one of two complete
/// files, so a file system that cannot do this is not a failure.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}
