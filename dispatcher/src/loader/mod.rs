//! Finds plugins, decides which may be used, and opens them.
//!
//! The checks of each file, in order: is it trusted ([`trust`]); is it a complete library for this machine with a sound
//! manifest ([`precheck`]); is its hash the recorded one; is it quarantined; is it a duplicate; is it the best build of its
//! plugin for this processor ([`variants`]). All of these read bytes and run no code of the library. Only then is it
//! opened: first, if its hash is not known good ([`verified`]), in a separate process ([`probe`]), then in this one.
//!
//! Decisions:
//! - no failure ends the process or the search: each library has a verdict, and a library that cannot be used never
//!   prevents another from loading. If the chosen build of a plugin does not open, the next best is tried;
//! - a library is never unmapped, because the layout checker and every kernel pointer refer into it;
//! - a library is opened by the descriptor of the file that was checked, unless it names folders relative to its own
//!   (`$ORIGIN`), which the system's loader derives from the name. Only trusted users can still change the bytes in place.

mod acl;
mod cause;
pub mod config;
mod contents;
mod cpu;
pub(crate) mod declared;
mod discovery;
mod elf;
mod error;
pub(crate) mod floating_point;
mod interrupt;
pub mod judged;
mod lacking;
mod links;
mod machine;
pub mod manifest;
mod open;
mod opening;
pub mod precheck;
pub mod preferences;
mod privilege;
pub mod probe;
pub mod quarantine;
mod reason;
mod run_path;
pub mod search;
pub mod side;
pub mod trust;
mod trying;
pub mod variants;
pub mod verified;
mod vet;

pub use cause::Cause;
pub use config::Config;
pub use contents::Tables;
pub use cpu::CpuFeatures;
pub use discovery::{Candidate, Discovery, Verdict};
pub use error::LoadError;
pub use judged::{CertificatePolicy, Judged};
pub use machine::HOST_ABI;
pub use manifest::{KernelRecord, Manifest};
pub use preferences::Preferences;
pub use probe::Probe;
pub use quarantine::{Quarantine, QuarantineRecord};
pub use reason::{AbiRange, Distrust, HandedOver, SameAs};
pub use search::{SearchOrigin, SearchPaths, Searched, Skipped, missing_entries, relative_entries};
pub use variants::PassedOver;
pub use verified::Verified;
pub use vet::Trial;

use crate::base::lossy::Lossy;
use keyway_sdk::abi::host::HostApi;
use keyway_sdk::abi::plugin::PluginContents;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::fmt;
use std::path::{Path, PathBuf};

/// A plugin that was opened and initialised.
#[derive(Debug, Clone)]
pub struct Plugin {
    /// The plugin's manifest.
    pub manifest: Manifest,
    /// The plugin's kernel records.
    pub kernel_records: Vec<KernelRecord>,
    /// The library's canonical path.
    pub path: PathBuf,
    /// The negotiated ABI version.
    pub abi_version: u32,
    opened: open::Opened,
}

impl Plugin {
    /// The plugin's checked tables.
    pub fn tables(&self) -> Tables {
        self.opened.tables
    }

    /// The structure that the plugin filled in.
    pub fn contents(&self) -> &'static PluginContents {
        self.opened.contents
    }

    /// The SHA-256 of the library's file.
    pub fn sha256(&self) -> Result<String, LoadError> {
        trust::sha256_file(&self.path)
    }
}

impl Serialize for Plugin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Plugin", 4)?;
        out.serialize_field("path", &Lossy(&self.path))?;
        out.serialize_field("abi_version", &self.abi_version)?;
        out.serialize_field("manifest", &self.manifest)?;
        out.serialize_field("kernels", &self.kernel_records)?;
        out.end()
    }
}

/// A library that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The library.
    pub path: PathBuf,
    /// The reason.
    pub error: LoadError,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.error)
    }
}

impl Serialize for Rejected {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Rejected", 3)?;
        out.serialize_field("path", &Lossy(&self.path))?;
        out.serialize_field("error", &self.error)?;
        out.serialize_field("message", &self.error.to_string())?;
        out.end()
    }
}

/// The result of loading.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Loaded {
    /// The plugins that are ready, in the order of search.
    pub plugins: Vec<Plugin>,
    /// The libraries that cannot be used, in the order of search.
    pub rejected: Vec<Rejected>,
    /// Every path and library, with verdicts that include the results of opening.
    pub discovery: Discovery,
}

impl Loaded {
    /// Moves an opened plugin to the libraries that cannot be used, because its contents could not be registered.
    pub fn refuse(&mut self, rejected: Rejected) {
        self.plugins.retain(|plugin| plugin.path != rejected.path);
        for candidate in &mut self.discovery.candidates {
            if candidate.path == rejected.path && candidate.verdict == Verdict::Chosen {
                candidate.verdict = Verdict::Rejected(rejected.error.clone());
            }
        }
        self.rejected.push(rejected);
    }
}

/// Finds and opens plugins.
#[derive(Debug, Clone)]
pub struct Loader {
    config: Config,
}

impl Loader {
    /// A loader for these paths and rules.
    pub fn new(config: Config) -> Loader {
        Loader { config }
    }

    /// The loader's configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Searches for libraries and decides which are to be used, without running their code.
    pub fn discover(&self) -> Discovery {
        Discovery::run(&self.config)
    }

    /// The reason why loading might do harm: a library that would be used is neither known good, nor can it be probed in a
    /// separate process first. `None` if there is no such library.
    pub fn cannot_vouch(&self, discovery: &Discovery) -> Option<String> {
        discovery.chosen().find_map(|candidate| {
            if !self.config.probe.enabled {
                return Some(format!("{} is `off`", probe::PROBE_VARIABLE));
            }
            // A library whose probe program exists and cannot work is refused, not loaded.
            let Err(probe::Outcome::NoProbe(why)) =
                self.config.probe.find(&candidate.path, &self.config.trust)
            else {
                return None;
            };
            let known = candidate.sha256().is_ok_and(|hash| discovery.known.passed(&hash));
            (!known).then(|| format!("there is no `keyway-probe`: {why}"))
        })
    }

    /// Probes the library at `path` in a separate process, regardless of its records, and stores the result. Its hash is
    /// computed from its bytes; a quarantine record is ignored, and cleared if the library is sound.
    pub fn verify(&self, path: &Path) -> Trial {
        vet::verify(&self.config, path)
    }

    /// Finds, opens and initialises every plugin. A library that is not known good is probed in a separate process first;
    /// one that fails the probe is not opened. `take_error` returns and clears the message that the calling thread's last
    /// call into a plugin set with `HostApi::set_error`.
    ///
    /// A library that this process opened before is not initialised again: its tables are the same.
    pub fn load_all(&self, host: &'static HostApi, take_error: impl Fn() -> String) -> Loaded {
        let mut discovery = self.discover();
        let mut plugins = Vec::new();
        let mut vetting = vet::Vetting::new(&self.config, std::mem::take(&mut discovery.known));
        opening::guard();
        for group in 0..discovery.plugins.len() {
            let mut failed = Vec::new();
            let mut used = None;
            for index in discovery.plugins[group].clone() {
                let candidate = &discovery.candidates[index];
                let Some(checked) = &candidate.checked else { continue };
                let opened = vetting.vet(candidate, checked).and_then(|vet::Vetted { file, loading }| {
                    // A library must not change the floating-point results of other code. Threads started later inherit
                    // this thread's settings.
                    let arithmetic = floating_point::Control::now();
                    let opened =
                        open::open(&candidate.path, checked, file, self.config.host_abi, host, &take_error);
                    arithmetic.restore();
                    if opened.is_ok() {
                        vetting.loaded(loading);
                    }
                    opened
                });
                match opened {
                    Ok(opened) => {
                        if candidate.failed_suite() {
                            warn_of_failure(candidate, &checked.manifest);
                        }
                        plugins.push(Plugin {
                            manifest: checked.manifest.clone(),
                            kernel_records: checked.kernels.clone(),
                            path: candidate.path.clone(),
                            abi_version: opened.abi_version,
                            opened,
                        });
                        used = Some(index);
                        break;
                    }
                    Err(error) => failed.push((index, error)),
                }
            }
            discovery.settle(group, &failed, used, &self.config.cpu);
        }
        vetting.finish(&discovery.candidates);
        let rejected = discovery
            .candidates
            .iter()
            .filter_map(|c| match &c.verdict {
                Verdict::Rejected(error) => Some(Rejected { path: c.found_as.clone(), error: error.clone() }),
                _ => None,
            })
            .collect();
        Loaded { plugins, rejected, discovery }
    }
}

/// Warns that a library which failed the conformance suite on this machine is used because there is no other.
fn warn_of_failure(candidate: &Candidate, manifest: &Manifest) {
    let (name, version) = (&manifest.name, &manifest.version);
    crate::base::log::warn(&format!(
        "{name} {version} in {} failed the conformance suite on this machine, so its results may be wrong; install another version, \
         judge it again with `keyway conformance {name}`, or set {}=off",
        candidate.found_as.display(),
        judged::POLICY_VARIABLE
    ));
}

/// Opens and initialises the library in `file`, without checks of trust or records: for the probe process. `path` is
/// its location.
pub(crate) fn open_for_trial(
    file: &Path,
    path: &Path,
    host: &'static HostApi,
    take_error: impl Fn() -> String,
) -> Result<Plugin, LoadError> {
    let checked = precheck::check(file, HOST_ABI)?;
    let (file, _) = precheck::open_regular(file)?;
    let opened = open::open(path, &checked, file, HOST_ABI, host, &take_error)?;
    let (manifest, kernel_records) = (checked.manifest, checked.kernels);
    Ok(Plugin { manifest, kernel_records, path: path.to_path_buf(), abi_version: opened.abi_version, opened })
}
