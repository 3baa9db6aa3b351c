//! Records of libraries that failed their trial, so that they are not opened again.
//!
//! One record for each library, named by the SHA-256 of its bytes: a rebuilt library is a new one. A failure that the
//! machine may have caused (a broken driver) is recorded with the machine's state, and counts only in that state. The
//! folder is read when libraries are searched for; a folder that cannot be written never prevents loading.

pub use super::cause::Cause;

use super::error::LoadError;
use super::privilege::home_folder;
use super::trust::{hash_regular, is_sha256};
use super::{machine, side};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The record of one quarantined library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineRecord {
    /// SHA-256 of the library.
    pub sha256: String,
    /// The library's size in bytes; `None` if the record is damaged. Files of another size need not be hashed.
    pub size: Option<u64>,
    /// The library's path.
    #[serde(serialize_with = "crate::base::lossy::path")]
    pub path: PathBuf,
    /// The kind of failure.
    #[serde(default)]
    pub cause: Cause,
    /// A description of the failure.
    pub reason: String,
    /// The state of host or machine that may have caused the failure: in another state the library is probed again.
    #[serde(default)]
    pub holds_while: Option<String>,
    /// Seconds since 1970.
    pub time: u64,
}

impl QuarantineRecord {
    /// A new record of a library that failed for `reason`, independent of the machine's state.
    ///
    /// # Errors
    /// The library cannot be read.
    pub fn of(path: &Path, cause: Cause, reason: &str) -> Result<QuarantineRecord, LoadError> {
        let (sha256, stamp) = hash_regular(path)?;
        Ok(QuarantineRecord {
            sha256,
            size: Some(stamp.id.size),
            path: path.to_path_buf(),
            cause,
            reason: reason.to_string(),
            holds_while: None,
            time: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
        })
    }

    /// Whether the record still excludes the library: the state that may have caused the failure has not changed.
    pub fn holds(&self) -> bool {
        machine::holds(self.holds_while.as_deref())
    }
}

/// The folder of records.
#[derive(Debug, Clone, Default)]
pub struct Quarantine {
    /// The folder of the records; `None` stores none.
    pub folder: Option<PathBuf>,
}

impl Quarantine {
    /// The records of the current user, in `XDG_STATE_HOME` or `~/.local/state`.
    pub fn of_user() -> Quarantine {
        Quarantine {
            folder: home_folder("XDG_STATE_HOME", ".local/state").map(|p| p.join("keyway/quarantine")),
        }
    }

    /// The path of the record for a hash.
    pub fn record_path(&self, sha256: &str) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(format!("{sha256}.json")))
    }

    /// All records, by hash. A damaged record still counts, since its file name is the hash.
    pub fn list(&self) -> Vec<QuarantineRecord> {
        let Some(entries) = self.folder.as_ref().and_then(|folder| std::fs::read_dir(folder).ok()) else {
            return Vec::new();
        };
        let mut records: Vec<QuarantineRecord> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let sha256 = path.file_name()?.to_str()?.strip_suffix(".json")?.to_string();
                if !is_sha256(&sha256) {
                    return None;
                }
                let read =
                    side::read(&path).ok().and_then(|b| serde_json::from_slice::<QuarantineRecord>(&b).ok());
                Some(match read {
                    Some(record) => QuarantineRecord { sha256, ..record },
                    None => QuarantineRecord {
                        sha256,
                        size: None,
                        path: PathBuf::new(),
                        cause: Cause::Unknown,
                        reason: "for a reason that is lost, since its record cannot be read".to_string(),
                        holds_while: None,
                        time: 0,
                    },
                })
            })
            .collect();
        records.sort_by(|a, b| a.sha256.cmp(&b.sha256));
        records
    }

    /// Stores a record, replacing an earlier one of the same library, and returns its path.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn add(&self, record: &QuarantineRecord) -> io::Result<PathBuf> {
        let target = self.record_path(&record.sha256).filter(|_| is_sha256(&record.sha256));
        let Some(target) = target else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no folder for quarantine records"));
        };
        side::write(&target, &serde_json::to_vec_pretty(record)?)?;
        Ok(target)
    }

    /// Removes the record of one hash. Returns whether it existed.
    pub fn clear(&self, sha256: &str) -> io::Result<bool> {
        match self.record_path(sha256).filter(|_| is_sha256(sha256)).map(std::fs::remove_file) {
            None => Ok(false),
            Some(Err(e)) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Some(result) => result.map(|()| true),
        }
    }

    /// Removes all records and returns their number.
    pub fn clear_all(&self) -> io::Result<usize> {
        let records = self.list();
        for record in &records {
            self.clear(&record.sha256)?;
        }
        Ok(records.len())
    }

    /// Refuses a file that `records` name. The hash is computed only if a record may match.
    pub fn check(
        &self,
        records: &[QuarantineRecord],
        size: u64,
        hash: impl FnOnce() -> Result<String, LoadError>,
    ) -> Result<(), LoadError> {
        let mut near = records.iter().filter(|r| r.size.is_none_or(|s| s == size) && r.holds()).peekable();
        if near.peek().is_none() {
            return Ok(());
        }
        let hash = hash()?;
        match near.find(|r| r.sha256.eq_ignore_ascii_case(&hash)) {
            None => Ok(()),
            Some(record) => Err(LoadError::Quarantined {
                cause: record.cause,
                reason: record.reason.clone(),
                record: self.record_path(&record.sha256).unwrap_or_default(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::trust::sha256_file;

    #[test]
    fn records_are_added_found_and_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let quarantine = Quarantine { folder: Some(folder.path().join("state/quarantine")) };
        let library = folder.path().join("a.so");
        std::fs::write(&library, "x").unwrap();
        assert!(quarantine.list().is_empty());
        let failed = QuarantineRecord::of(&library, Cause::Crash, "SIGILL in initialize").unwrap();
        let record = quarantine.add(&failed).unwrap();
        let records = quarantine.list();
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].size, Some(1));
        let refused = quarantine.check(&records, 1, || sha256_file(&library));
        assert_eq!(
            refused,
            Err(LoadError::Quarantined {
                cause: Cause::Crash,
                reason: "SIGILL in initialize".into(),
                record: record.clone()
            })
        );
        let untouched = quarantine.check(&records, 2, || panic!("another size needs no hash"));
        assert_eq!(untouched, Ok(()));
        // A failure that the machine may have caused counts only in that state of the machine.
        for (state, refused) in [(machine::boot(), true), ("another state", false)] {
            quarantine.add(&QuarantineRecord { holds_while: Some(state.into()), ..failed.clone() }).unwrap();
            let checked = quarantine.check(&quarantine.list(), 1, || sha256_file(&library));
            assert_eq!(checked.is_err(), refused, "{state}");
        }
        std::fs::write(&record, "damaged").unwrap();
        assert!(quarantine.check(&quarantine.list(), 9, || sha256_file(&library)).is_err());
        assert!(!quarantine.clear("../../etc/passwd").unwrap());
        assert_eq!(quarantine.clear_all().unwrap(), 1);
        assert!(quarantine.list().is_empty());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error_of_add_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let quarantine = Quarantine { folder: Some(file.join("below")) };
        assert!(quarantine.list().is_empty());
        let record = QuarantineRecord::of(&file, Cause::Hang, "reason").unwrap();
        assert!(quarantine.add(&record).is_err());
        assert!(!quarantine.clear(&"0".repeat(64)).unwrap_or(false));
    }
}
