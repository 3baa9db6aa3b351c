//! Which library is being tried now, so that a trial which ends the program that runs it is not forgotten.
//!
//! One file for each hash, in the folder of quarantine, which is locked from before the trial until after it, and removed
//! then. The system gives the lock up with the process: a file that nobody locks tells of a trial whose program is gone.
//! Several programs may try one library at once; the first alone has the file, and a lock that is held speaks against no
//! library.

use super::quarantine::Quarantine;
use super::side;
use super::trust::is_sha256;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// So many programs that came to their end in a trial are the library's doing. One may have been interrupted by its user,
/// who did not want to wait for a driver.
const ENOUGH: u32 = 2;

/// A trial under way; dropped, it is over.
pub(super) struct Trying {
    path: PathBuf,
    file: File,
}

/// What is found before a trial.
pub(super) enum Before {
    /// Nothing speaks against one. What is given is kept until it is over; it is none where another program tries the same
    /// library now, or where nothing can be written down.
    Try(Option<Trying>),
    /// Earlier trials ended their programs.
    Ended,
}

/// Writes down that the library of this hash is being tried. `forget` counts nothing of what earlier trials left.
pub(super) fn begin(quarantine: &Quarantine, sha256: &str, forget: bool) -> Before {
    let path =
        quarantine.folder.as_ref().filter(|_| is_sha256(sha256)).map(|f| f.join(format!("{sha256}.trying")));
    let Some((path, mut file)) = path.and_then(|path| Some((path.clone(), open(path)?))) else {
        return Before::Try(None);
    };
    let mut text = String::new();
    // A damaged record is none.
    let _ = (&file).take(64).read_to_string(&mut text);
    let ended = text.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
    if ended >= ENOUGH && !forget {
        drop(Trying { path, file });
        return Before::Ended;
    }
    let ended = if forget { 0 } else { ended };
    // The number is for people: what counts is the lock.
    let line = format!("{} trials begun, the last by process {}\n", ended + 1, std::process::id());
    let written = file.rewind().and_then(|()| file.set_len(0)).and_then(|()| file.write_all(line.as_bytes()));
    // A full disk: the trial is not remembered.
    Before::Try(written.ok().map(|()| Trying { path, file }))
}

/// The file, locked; `None` if another has it, or if there are no locks here.
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
    let plain = file.metadata().is_ok_and(|meta| meta.is_file());
    (plain && file.try_lock().is_ok()).then_some(file)
}

impl Drop for Trying {
    fn drop(&mut self) {
        // While it is locked, so that no other takes it for one that was left. One that stays is no harm: its next trial
        // counts it once.
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
        let begin = |forget| begin(&quarantine, &hash, forget);
        // What a process that is killed leaves: the file without a lock.
        let killed = || {
            let Before::Try(Some(trying)) = begin(false) else { panic!("not tried") };
            trying.file.unlock().unwrap();
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
        assert!(matches!(begin(true), Before::Try(Some(_))));
        std::fs::write(&path, [0xff; 200]).unwrap();
        assert!(matches!(begin(false), Before::Try(Some(_))), "a damaged record is none");
        let nowhere = Quarantine::default();
        assert!(matches!(super::begin(&nowhere, &hash, false), Before::Try(None)));
    }
}
