//! Records of libraries that passed a trial, so that the next start needs none, and of libraries that a program has loaded
//! since.
//!
//! One small file in the user's state folder. It caches the hash of each file by its metadata (device, inode, size, times),
//! so that a start reads no library completely, and the hashes that passed, each with the state that the result depends on.
//! If it cannot be read or written, libraries are probed again, and loading still works; it is trusted only if its owner
//! alone may write it.

use super::machine;
use super::precheck::Stamp;
use super::privilege::home_folder;
use super::side;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// The maximum number of entries; the oldest are dropped.
const MAX_ENTRIES: usize = 512;
/// A file that changed less than this long before it was read may change again without a new time stamp.
const SETTLED_NS: i64 = 1_000_000_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Hashed {
    stamp: Stamp,
    sha256: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Passed {
    sha256: String,
    host: String,
    system: String,
}

/// The content of the file, newest last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    #[serde(default)]
    files: Vec<Hashed>,
    #[serde(default)]
    passed: Vec<Passed>,
    /// Libraries that programs loaded without a crash.
    #[serde(default)]
    loaded: Vec<Passed>,
}

impl Known {
    /// The cached hash of a file with the same metadata.
    pub(super) fn hash_of(&self, stamp: &Stamp) -> Option<&str> {
        self.files.iter().rev().find(|known| known.stamp == *stamp).map(|known| known.sha256.as_str())
    }

    /// Whether these bytes passed a trial by this host on this system.
    pub(super) fn passed(&self, sha256: &str) -> bool {
        is_in(&self.passed, sha256)
    }

    /// Whether a program of this host loaded these bytes on this system, and went on.
    pub(super) fn loaded(&self, sha256: &str) -> bool {
        is_in(&self.loaded, sha256)
    }

    fn note_hash(&mut self, stamp: &Stamp, sha256: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos());
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        if now.saturating_sub(stamp.changed_ns) < SETTLED_NS || self.hash_of(stamp) == Some(sha256) {
            return;
        }
        self.files.retain(|known| {
            (known.stamp.id.device, known.stamp.id.inode) != (stamp.id.device, stamp.id.inode)
        });
        self.files.push(Hashed { stamp: *stamp, sha256: sha256.to_string() });
        let surplus = self.files.len().saturating_sub(MAX_ENTRIES);
        self.files.drain(..surplus);
    }
}

/// Whether this host on this system is recorded for a hash.
fn is_in(list: &[Passed], sha256: &str) -> bool {
    let (host, system) = (machine::host(), machine::system());
    list.iter().any(|p| p.sha256 == sha256 && p.host == host && p.system == system)
}

fn note(list: &mut Vec<Passed>, sha256: &str) {
    if is_in(list, sha256) {
        return;
    }
    let (sha256, system) = (sha256.to_string(), machine::system().to_string());
    list.push(Passed { sha256, host: machine::host(), system });
    let surplus = list.len().saturating_sub(MAX_ENTRIES);
    list.drain(..surplus);
}

/// A fact that a search or a trial established.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum News {
    /// The hash of a file.
    Hash(Stamp, String),
    /// A hash passed its trial.
    Passed(String),
    /// A program loaded a hash, and went on.
    Loaded(String),
    /// A hash failed, so that its earlier pass is void.
    Failed(String),
}

/// The record of libraries that passed a trial.
#[derive(Debug, Clone, Default)]
pub struct Verified {
    /// The file of records; `None` stores nothing.
    pub file: Option<PathBuf>,
}

impl Verified {
    /// The record of the current user, in `XDG_STATE_HOME` or `~/.local/state`; none in a privileged process.
    pub fn of_user() -> Verified {
        Verified {
            file: home_folder("XDG_STATE_HOME", ".local/state").map(|p| p.join("keyway/verified.json")),
        }
    }

    pub(super) fn read(&self) -> Known {
        let read = |file: &PathBuf| serde_json::from_slice(&side::read_private(file).ok()?).ok();
        self.file.as_ref().and_then(read).unwrap_or_default()
    }

    /// Adds entries to the file. An entry that another process adds concurrently may be lost, which costs one more trial.
    pub(super) fn add(&self, news: &[News]) -> io::Result<()> {
        let Some(file) = self.file.as_ref().filter(|_| !news.is_empty()) else { return Ok(()) };
        let before = self.read();
        let mut known = before.clone();
        for news in news {
            match news {
                News::Hash(stamp, sha256) => known.note_hash(stamp, sha256),
                News::Passed(sha256) => note(&mut known.passed, sha256),
                News::Loaded(sha256) => note(&mut known.loaded, sha256),
                News::Failed(sha256) => {
                    known.passed.retain(|p| p.sha256 != *sha256);
                    known.loaded.retain(|p| p.sha256 != *sha256);
                }
            }
        }
        if known == before { Ok(()) } else { side::write(file, &serde_json::to_vec(&known)?) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::precheck::FileId;
    use std::os::unix::fs::PermissionsExt;

    fn stamp(inode: u64, changed_ns: i64) -> Stamp {
        Stamp { id: FileId { device: 1, inode, size: 3 }, modified_ns: 5, changed_ns }
    }

    #[test]
    fn hashes_and_passes_are_remembered_and_withdrawn() {
        let folder = tempfile::tempdir().unwrap();
        let verified = Verified { file: Some(folder.path().join("state/verified.json")) };
        let (a, b) = ("a".repeat(64), "b".repeat(64));
        verified.add(&[News::Hash(stamp(1, 7), a.clone()), News::Passed(a.clone())]).unwrap();
        assert!(!verified.read().loaded(&a));
        verified.add(&[News::Loaded(a.clone())]).unwrap();
        let known = verified.read();
        assert!(known.loaded(&a) && !known.loaded(&b));
        assert_eq!(known.hash_of(&stamp(1, 7)), Some(a.as_str()));
        assert_eq!(known.hash_of(&stamp(1, 8)), None, "a file that changed is read again");
        assert!(known.passed(&a) && !known.passed(&b));
        // The file was replaced: one entry for an inode.
        verified.add(&[News::Hash(stamp(1, 8), b.clone()), News::Failed(a.clone())]).unwrap();
        let known = verified.read();
        assert_eq!((known.hash_of(&stamp(1, 7)), known.hash_of(&stamp(1, 8))), (None, Some(b.as_str())));
        assert!(!known.passed(&a) && !known.loaded(&a));
    }

    #[test]
    fn a_file_that_has_just_changed_is_not_remembered() {
        let mut known = Known::default();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64;
        known.note_hash(&stamp(1, now), "x");
        assert_eq!(known, Known::default());
        for inode in 0..2 * MAX_ENTRIES as u64 {
            known.note_hash(&stamp(inode, 0), "x");
            note(&mut known.passed, &inode.to_string());
        }
        assert_eq!((known.files.len(), known.passed.len()), (MAX_ENTRIES, MAX_ENTRIES));
    }

    #[test]
    fn what_is_of_another_host_or_that_others_may_write_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("verified.json");
        let verified = Verified { file: Some(file.clone()) };
        verified.add(&[News::Passed("a".into())]).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        side::write(&file, text.replace("host ", "host 9").as_bytes()).unwrap();
        assert!(!verified.read().passed("a"));
        side::write(&file, text.as_bytes()).unwrap();
        assert!(verified.read().passed("a"));
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(!verified.read().passed("a"));
        assert!(Verified::default().add(&[News::Passed("a".into())]).is_ok());
        side::write(&file, b"{ nonsense").unwrap();
        assert_eq!(verified.read(), Known::default());
    }
}
