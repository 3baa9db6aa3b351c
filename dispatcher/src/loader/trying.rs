//! Records which library is being probed or loaded, so that one that ends the program is known afterwards.
//!
//! One file for each hash and kind of work, in the quarantine folder; it is locked before the work, unlocked after it and
//! then removed. The system releases the lock with the process: an unlocked file means that the program has ended. Several
//! programs may probe or load one library concurrently; only the first has the file, and a held lock does not count against
//! a library. A program that its user interrupts is not counted (`interrupt`).

use super::interrupt;
use super::quarantine::Quarantine;
use super::side;
use super::trust::is_sha256;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Duration;

/// The number of programs that must end during the work before the library is blamed. A single one may have been killed by
/// its user, who did not want to wait for a driver, or by the system for lack of memory.
const ENOUGH: u32 = 2;

/// The kind of work on a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// A trial in a separate process.
    Trial,
    /// The library is loaded into the program.
    Load,
}

impl Work {
    /// The suffix of the record's file name.
    fn suffix(self) -> &'static str {
        match self {
            Work::Trial => "trying",
            Work::Load => "loading",
        }
    }
}

/// A guard: while it lives, the work is in progress.
pub(super) struct Trying {
    path: PathBuf,
    file: File,
    watch: Box<interrupt::Watch>,
}

/// The state before the work.
pub(super) enum Before {
    /// The work may start. The guard is held until the work is done; it is `None` if another program does the same work on
    /// this library, or if the file cannot be written.
    Try(Option<Trying>),
    /// Earlier work of this kind ended its programs.
    Ended,
}

/// Records that the library of this hash is being probed or loaded. An interrupt by the user within `limit` does not count
/// against the library. `forget` ignores the counts of earlier work.
pub(super) fn begin(
    quarantine: &Quarantine,
    sha256: &str,
    work: Work,
    limit: Duration,
    forget: bool,
) -> Before {
    let name = format!("{sha256}.{}", work.suffix());
    let path = quarantine.folder.as_ref().filter(|_| is_sha256(sha256)).map(|f| f.join(name));
    let Some((path, mut file)) = path.and_then(|path| Some((path.clone(), open(path)?))) else {
        return Before::Try(None);
    };
    let mut text = String::new();
    // A damaged record counts as none.
    let _ = (&file).take(64).read_to_string(&mut text);
    let ended = text.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
    if ended >= ENOUGH && !forget {
        drop(Trying { path, file, watch: Box::new(interrupt::Watch::none()) });
        return Before::Ended;
    }
    let ended = if forget { 0 } else { ended };
    // The process id is informative; the lock decides.
    let line = format!("{} times begun, the last by process {}\n", ended + 1, std::process::id());
    let written = file.rewind().and_then(|()| file.set_len(0)).and_then(|()| file.write_all(line.as_bytes()));
    // A full disk: it is not remembered.
    Before::Try(written.ok().map(|()| {
        let watch = interrupt::Watch::begin(&file, ended, limit);
        Trying { path, file, watch: Box::new(watch) }
    }))
}

/// The locked file; `None` if another process has it, or if the file system has no locks.
fn open(path: PathBuf) -> Option<File> {
    side::make_folder_of(&path).ok()?;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
        .open(path)
        .ok()?;
    // Locked before the check whether another process removed the file, whose content would then be stale.
    let there = |file: &File| file.metadata().is_ok_and(|meta| meta.is_file() && meta.nlink() > 0);
    (file.try_lock().is_ok() && there(&file)).then_some(file)
}

impl Drop for Trying {
    fn drop(&mut self) {
        self.watch.end();
        // Removed while locked, so that no other process takes it for an abandoned one. A file that remains is harmless:
        // the next run counts it once.
        let _ = std::fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_that_lives_is_no_evidence_and_two_that_ended_their_programs_are() {
        let folder = tempfile::tempdir().unwrap();
        let quarantine = Quarantine { folder: Some(folder.path().join("state/quarantine")) };
        let hash = "a".repeat(64);
        let path = quarantine.folder.as_ref().unwrap().join(format!("{hash}.trying"));
        let limit = Duration::from_secs(30);
        let begin = |forget| begin(&quarantine, &hash, Work::Trial, limit, forget);
        // The state that a killed process leaves: the file without a lock.
        let killed = || {
            let Before::Try(Some(mut trying)) = begin(false) else { panic!("not tried") };
            trying.file.unlock().unwrap();
            trying.watch.end();
            std::mem::forget(trying);
        };
        let Before::Try(Some(first)) = begin(false) else { panic!("not tried") };
        for _ in 0..5 {
            assert!(matches!(begin(false), Before::Try(None)), "the other one lives");
        }
        drop(first);
        assert!(!path.exists());
        killed();
        drop(begin(false));
        assert!(!path.exists(), "it passed");
        killed();
        killed();
        assert!(matches!(begin(false), Before::Ended) && !path.exists());
        killed();
        killed();
        assert!(matches!(super::begin(&quarantine, &hash, Work::Load, limit, false), Before::Try(Some(_))));
        assert!(matches!(begin(true), Before::Try(Some(_))));
        std::fs::write(&path, [0xff; 200]).unwrap();
        assert!(matches!(begin(false), Before::Try(Some(_))), "a damaged record is none");
        let nowhere = Quarantine::default();
        assert!(matches!(super::begin(&nowhere, &hash, Work::Load, limit, false), Before::Try(None)));
    }
}
