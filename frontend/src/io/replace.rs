//! Replacing a file as a whole: the old content stays until the new one is on the disk.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// How much is gathered before it is handed to the system.
const BUFFER: usize = 1 << 16;

/// Writes a new file beside `path`, brings it to the disk and renames it over `path`. Whatever fails, `path` is as it
/// was, and the new file is gone. A device or a pipe is written to as it is. A link is followed, so that it stays a link; permissions of an old file are kept.
///
/// # Errors
/// What `write` or the system reports.
pub fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let target = match std::fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_path_buf(),
        Err(error) => return Err(error),
    };
    let folder = folder_of(&target);
    let old = std::fs::metadata(&target).ok();
    match &old {
        Some(old) if old.is_dir() => return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a folder")),
        // A device or a pipe has no old content to keep, and must not be renamed away.
        Some(old) if !old.is_file() => {
            let mut file = std::fs::OpenOptions::new().write(true).open(&target)?;
            write(&mut file)?;
            return file.flush();
        }
        _ => {}
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".keyway-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What a plain new file would get; the system takes the process's mask off.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let fresh = builder.tempfile_in(&folder)?;
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

fn folder_of(target: &Path) -> PathBuf {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Brings the rename itself to the disk. The content is there already and the name points to one of two whole files, so
/// a file system that cannot do this is no failure.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = std::fs::File::open(folder) {
        let _ = folder.sync_all();
    }
}
