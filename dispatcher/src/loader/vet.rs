//! Decides whether a library may be opened in this process: it is known good, or passes a trial now.

use super::cause::Cause;
use super::config::Config;
use super::discovery::Candidate;
use super::error::LoadError;
use super::precheck::{self, Checked};
use super::probe::{self, Outcome};
use super::quarantine::QuarantineRecord;
use super::trying::{self, Before, Trying, Work};
use super::verified::{Known, News};
use super::{open, trust};
use std::fs::File;
use std::path::Path;
use std::sync::Once;
use std::time::{SystemTime, UNIX_EPOCH};

/// The result of a requested trial.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trial {
    /// The library was loaded, registered and asked for its devices in a separate process.
    Sound,
    /// The library cannot be used.
    Failed(LoadError),
    /// The library is unknown: there is no probe program, or the program failed to work, for this reason.
    Untried(String),
}

/// The trials of one search, and the results to store.
pub(super) struct Vetting<'a> {
    config: &'a Config,
    known: Known,
    news: Vec<News>,
}

/// A library that may be opened in this process.
pub(super) struct Vetted {
    /// The file that was checked.
    pub(super) file: File,
    /// Retained until the library is open and set up.
    pub(super) loading: Loading,
}

/// The record that a library is being loaded here.
#[derive(Default)]
pub(super) struct Loading {
    /// The library's hash, if the result is to be stored.
    sha256: Option<String>,
    _mark: Option<Trying>,
}

impl<'a> Vetting<'a> {
    pub(super) fn new(config: &'a Config, known: Known) -> Vetting<'a> {
        Vetting { config, known, news: Vec::new() }
    }

    /// Opens the file of a candidate that may be loaded. It is the file that was checked.
    pub(super) fn vet(&mut self, candidate: &Candidate, checked: &Checked) -> Result<Vetted, LoadError> {
        let (file, stamp) = precheck::open_regular(&candidate.path)?;
        if open::is_open(&candidate.path) {
            return Ok(Vetted { file, loading: Loading::default() });
        }
        if stamp != checked.stamp {
            return Err(LoadError::Changed);
        }
        if !self.config.probe.enabled {
            return Ok(Vetted { file, loading: Loading::default() });
        }
        let sha256 = candidate.sha256()?;
        if !self.known.passed(&sha256) {
            match self.try_open(&candidate.path, &file, &sha256, stamp.id.size, false) {
                Outcome::Sound => {}
                // A library that failed to load in the trial is not loaded here either.
                Outcome::Answered(reason) => return Err(LoadError::Trial { reason }),
                Outcome::Failed(failed) => {
                    return Err(self.record(&candidate.path, &sha256, stamp.id.size, &failed));
                }
                Outcome::NoProbe(why) => warn_of_missing_probe(&why),
                Outcome::CannotTry(why) => return Err(LoadError::Untried { why }),
            }
        }
        let loading = self.begin_to_load(&candidate.path, sha256, stamp.id.size)?;
        Ok(Vetted { file, loading })
    }

    /// Records that the library is about to be loaded here, unless a program has survived that before.
    fn begin_to_load(&mut self, path: &Path, sha256: String, size: u64) -> Result<Loading, LoadError> {
        if self.known.loaded(&sha256) {
            return Ok(Loading::default());
        }
        match trying::begin(&self.config.quarantine, &sha256, Work::Load, self.config.probe.limit, false) {
            Before::Try(mark) => Ok(Loading { sha256: Some(sha256), _mark: mark }),
            Before::Ended => {
                let reason = "two programs ended while they loaded it";
                let failed =
                    probe::Failed { cause: Cause::Crash, reason: reason.to_string(), holds_while: None };
                Err(self.record(path, &sha256, size, &failed))
            }
        }
    }

    /// Notes that a library was opened and set up in this process.
    pub(super) fn loaded(&mut self, loading: Loading) {
        self.news.extend(loading.sha256.map(News::Loaded));
    }

    /// Probes a library. `again` probes even a library whose earlier trials ended their programs.
    fn try_open(&mut self, path: &Path, file: &File, sha256: &str, size: u64, again: bool) -> Outcome {
        let program = match self.config.probe.find(path, &self.config.trust) {
            Ok(program) => program,
            Err(outcome) => return outcome,
        };
        let limit = self.config.probe.limit;
        let _trying = match trying::begin(&self.config.quarantine, sha256, Work::Trial, limit, again) {
            Before::Try(trying) => trying,
            Before::Ended => {
                let reason = "a trial of it ended the program that ran it".to_string();
                return Outcome::Failed(probe::Failed { cause: Cause::Crash, reason, holds_while: None });
            }
        };
        let outcome = self.config.probe.run(&program, path, file);
        if outcome == Outcome::Sound {
            self.news.push(News::Passed(sha256.to_string()));
        }
        if matches!(outcome, Outcome::Sound | Outcome::Answered(_)) {
            // An earlier record that no longer holds. It is harmless if it remains.
            let _ = self.config.quarantine.clear(sha256);
        }
        log_trial(path, size, &outcome);
        outcome
    }

    fn record(&mut self, path: &Path, sha256: &str, size: u64, failed: &probe::Failed) -> LoadError {
        self.news.push(News::Failed(sha256.to_string()));
        let record = QuarantineRecord {
            sha256: sha256.to_string(),
            size: Some(size),
            path: path.to_path_buf(),
            cause: failed.cause,
            reason: failed.reason.clone(),
            holds_while: failed.holds_while.clone(),
            time: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
        };
        // If nothing can be written, the next program probes the library again.
        probe::error(failed, self.config.quarantine.add(&record).unwrap_or_default())
    }

    /// Stores the established facts, also of files that were read for another reason.
    pub(super) fn finish(mut self, candidates: &[Candidate]) {
        self.news.extend(candidates.iter().filter_map(Candidate::news));
        // A result that cannot be stored is determined again next time.
        let _ = self.config.verified.add(&self.news);
    }
}

fn log_trial(path: &Path, size: u64, outcome: &Outcome) {
    use keyway_sdk::abi::codes::level::DEBUG;
    crate::base::log::write(DEBUG, &format!("tried {} ({size} bytes): {outcome:?}", path.display()));
}

fn warn_of_missing_probe(why: &str) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        crate::base::log::warn(&format!(
            "backends are loaded without a trial in a process of their own, for want of `keyway-probe`: {why}; \
             put it there, or run `keyway backend verify` once"
        ));
    });
}

/// Probes a library regardless of its records, and stores the result. Its hash is computed from its bytes and compared with
/// the one recorded next to it; a quarantine record is cleared.
pub(super) fn verify(config: &Config, path: &Path) -> Trial {
    let mut vetting = Vetting::new(config, Known::default());
    let trial = vetting.verify(path);
    vetting.finish(&[]);
    trial.unwrap_or_else(Trial::Failed)
}

impl Vetting<'_> {
    fn verify(&mut self, path: &Path) -> Result<Trial, LoadError> {
        let (file, stamp) = precheck::open_regular(path)?;
        let (sha256, hashed) = trust::hash_regular(path)?;
        if stamp != hashed {
            return Err(LoadError::Changed);
        }
        trust::check_recorded_hash(path, || Ok(sha256.clone()))?;
        let size = stamp.id.size;
        Ok(match self.try_open(path, &file, &sha256, size, true) {
            Outcome::Sound => {
                self.news.push(News::Hash(stamp, sha256));
                Trial::Sound
            }
            Outcome::Answered(reason) => Trial::Failed(LoadError::Trial { reason }),
            Outcome::Failed(failed) => Trial::Failed(self.record(path, &sha256, size, &failed)),
            Outcome::NoProbe(why) | Outcome::CannotTry(why) => Trial::Untried(why),
        })
    }
}

#[cfg(all(test, not(any(miri, loom))))]
mod tests {
    use super::*;
    use crate::loader::{Discovery, Probe, Quarantine, Verified};

    /// A folder with the smallest plugin, which cargo puts next to the test program.
    fn folder() -> (tempfile::TempDir, Config) {
        let folder = tempfile::tempdir().unwrap();
        let name =
            format!("{}keyway_test_minimal{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        let built = std::env::current_exe().unwrap().with_file_name(name);
        std::fs::copy(built, folder.path().join("a.so")).unwrap();
        let config = Config {
            quarantine: Quarantine::default(),
            verified: Verified::default(),
            probe: Probe::off(),
            ..Config::only(vec![folder.path().into()])
        };
        (folder, config)
    }

    #[test]
    fn a_file_that_is_swapped_after_the_check_is_not_opened() {
        let (folder, config) = folder();
        let discovery = Discovery::run(&config);
        let candidate = &discovery.candidates[0];
        let checked = candidate.checked.as_ref().unwrap();
        let mut vetting = Vetting::new(&config, Known::default());
        assert!(vetting.vet(candidate, checked).is_ok());
        let (path, other) = (folder.path().join("a.so"), folder.path().join("other"));
        std::fs::copy(&path, &other).unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(vetting.vet(candidate, checked).map(|_| ()), Err(LoadError::Changed));
        assert_eq!(candidate.sha256(), Err(LoadError::Changed));
        // Also if the same file has other content.
        let discovery = Discovery::run(&config);
        let candidate = &discovery.candidates[0];
        std::thread::sleep(std::time::Duration::from_millis(20));
        let file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        std::io::Write::write_all(&mut &file, b"x").unwrap();
        let checked = candidate.checked.as_ref().unwrap();
        assert_eq!(vetting.vet(candidate, checked).map(|_| ()), Err(LoadError::Changed));
    }
}
