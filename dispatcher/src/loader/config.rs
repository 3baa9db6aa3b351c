//! All that the loader's decisions depend on, so that tests can set it without touching the process.

use super::cpu::CpuFeatures;
use super::judged::Judged;
pub use super::machine::HOST_ABI;
use super::preferences::Preferences;
use super::probe::Probe;
use super::quarantine::Quarantine;
use super::reason::AbiRange;
use super::search::SearchPaths;
use super::trust::TrustPolicy;
use super::verified::Verified;
use std::path::PathBuf;

/// All that the loader's decisions depend on.
#[derive(Debug, Clone)]
pub struct Config {
    /// The search paths.
    pub search: SearchPaths,
    /// The owners whose files are trusted.
    pub trust: TrustPolicy,
    /// Records of libraries that failed before.
    pub quarantine: Quarantine,
    /// The results of the conformance suite on this machine.
    pub judged: Judged,
    /// The plugins that the user prefers.
    pub preferences: Preferences,
    /// Libraries that passed a trial before.
    pub verified: Verified,
    /// The trial of libraries before they are loaded.
    pub probe: Probe,
    /// The features of the processor.
    pub cpu: CpuFeatures,
    /// The ABI versions that the host supports.
    pub host_abi: AbiRange,
}

impl Config {
    /// The search paths of this process, with `explicit` files or folders first.
    pub fn of_process(explicit: Vec<PathBuf>) -> Config {
        Config::with(SearchPaths::of_process(explicit))
    }

    /// Only these files and folders, and no other path.
    pub fn only(explicit: Vec<PathBuf>) -> Config {
        Config::with(SearchPaths::only(explicit))
    }

    fn with(search: SearchPaths) -> Config {
        Config {
            search,
            trust: TrustPolicy::of_process(),
            quarantine: Quarantine::of_user(),
            judged: Judged::of_user(),
            preferences: Preferences::of_user(),
            verified: Verified::of_user(),
            probe: Probe::of_process(),
            cpu: CpuFeatures::detect(),
            host_abi: HOST_ABI,
        }
    }
}
