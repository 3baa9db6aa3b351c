//! Finds libraries and decides which are used, without opening any.

use super::config::Config;
use super::cpu::CpuFeatures;
use super::error::LoadError;
use super::judged::CertificatePolicy;
use super::manifest::{self, KernelRecord, Manifest};
use super::precheck::{self, Checked, FileId};
use super::reason::SameAs;
use super::run_path;
use super::search::{self, Found, SearchOrigin, Searched, Skipped};
use super::trust;
use super::variants::{self, Build, PassedOver};
use super::verified::{Known, News};
use crate::base::lossy::Lossy;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::OnceLock;

/// The verdict about a library.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "verdict", content = "detail", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// The library is the one to use.
    Chosen,
    /// The library is sound, but another build of the plugin is used.
    PassedOver(PassedOver),
    /// The library cannot be used.
    Rejected(LoadError),
}

/// A library found by the search.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The path where the library was found.
    pub found_as: PathBuf,
    /// The library's canonical path; `found_as` if it has none.
    pub path: PathBuf,
    /// The source of the search path.
    pub origin: SearchOrigin,
    /// The content of the library's file, as far as it could be read.
    pub checked: Option<Checked>,
    /// Whether it is used, and if not, why.
    pub verdict: Verdict,
    /// Rank of the searched path.
    pub(super) rank: usize,
    /// Whether the user chose this version.
    chosen: bool,
    /// Whether it failed the conformance suite on this machine.
    failed: bool,
    hash: OnceLock<String>,
    /// Whether the hash was read from the file, rather than remembered.
    hashed_now: OnceLock<()>,
}

impl Candidate {
    /// The SHA-256 of the library's bytes, computed on first use.
    pub fn sha256(&self) -> Result<String, LoadError> {
        if let Some(hash) = self.hash.get() {
            return Ok(hash.clone());
        }
        let (hash, stamp) = trust::hash_regular(&self.path)?;
        if self.checked.as_ref().is_some_and(|checked| checked.stamp != stamp) {
            return Err(LoadError::Changed);
        }
        let _ = self.hashed_now.set(());
        Ok(self.hash.get_or_init(|| hash).clone())
    }

    /// The facts about its file to store for later runs.
    pub(super) fn news(&self) -> Option<News> {
        let (stamp, hash) = (self.checked.as_ref()?.stamp, self.hash.get()?);
        self.hashed_now.get().map(|()| News::Hash(stamp, hash.clone()))
    }

    /// The plugin's name and version; `None` for a file that cannot be read.
    pub fn title(&self) -> Option<String> {
        let manifest = &self.checked.as_ref()?.manifest;
        Some(format!("{} {}", manifest.name, manifest.version))
    }

    /// Whether the library failed the conformance suite on this machine; false if the policy ignores certificates.
    pub fn failed_suite(&self) -> bool {
        self.failed
    }

    /// The reason why the library is not used, in one line; `None` if it is used.
    pub fn reason(&self) -> Option<String> {
        match &self.verdict {
            Verdict::Chosen => None,
            Verdict::PassedOver(reason) => Some(reason.to_string()),
            Verdict::Rejected(error) => Some(error.to_string()),
        }
    }

    fn build(&self) -> Option<Build<'_>> {
        let manifest = &self.checked.as_ref()?.manifest;
        Some(Build {
            chosen: self.chosen,
            // Named for this run, so it is requested.
            failed: self.failed && self.origin != SearchOrigin::Explicit,
            rank: self.rank,
            version: &manifest.version,
            variant: &manifest.variant,
            features: &manifest.cpu_features,
        })
    }
}

impl Serialize for Candidate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Candidate", 7)?;
        out.serialize_field("path", &Lossy(&self.path))?;
        out.serialize_field("found_as", &Lossy(&self.found_as))?;
        out.serialize_field("origin", &self.origin)?;
        out.serialize_field("library", &self.checked)?;
        out.serialize_field("sha256", &self.hash.get())?;
        out.serialize_field("outcome", &self.verdict)?;
        out.serialize_field("message", &self.reason())?;
        out.end()
    }
}

/// The result of a search.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Discovery {
    /// Every path that was searched, in order.
    pub searched: Vec<Searched>,
    /// Every library found, in search order.
    pub candidates: Vec<Candidate>,
    /// Indices of candidates, one list for each plugin: the one to use, then its possible replacements.
    #[serde(skip)]
    pub(super) plugins: Vec<Vec<usize>>,
    /// Results of earlier runs.
    #[serde(skip)]
    pub(super) known: Known,
}

impl Discovery {
    /// The libraries to use.
    pub fn chosen(&self) -> impl Iterator<Item = &Candidate> {
        self.candidates.iter().filter(|c| c.verdict == Verdict::Chosen)
    }

    /// The libraries of the same plugin name and other content that `used` shadows because its folder comes first.
    pub fn shadowed<'a>(&'a self, used: &'a Candidate) -> impl Iterator<Item = &'a Candidate> {
        self.candidates.iter().filter(move |c| match &c.verdict {
            Verdict::PassedOver(PassedOver::EarlierPath { used: by, .. }) => *by == used.path,
            Verdict::PassedOver(PassedOver::Namesake { used: by, .. }) => {
                *by == used.path && c.rank != used.rank
            }
            _ => false,
        })
    }

    /// The libraries of [`shadowed`](Discovery::shadowed), one clause for each.
    pub fn shadows(&self, used: &Candidate) -> Vec<String> {
        let clause = |other: &Candidate| {
            let earlier = |reason: &PassedOver| matches!(reason, PassedOver::EarlierPath { older: true, .. });
            let newer = matches!(&other.verdict, Verdict::PassedOver(reason) if earlier(reason));
            let newer = if newer { ", which is newer" } else { "" };
            format!("shadows {} in {}{newer}", other.title().unwrap_or_default(), other.found_as.display())
        };
        self.shadowed(used).map(clause).collect()
    }

    /// Remarks on a library that is used, one clause each: the libraries that it shadows, and a name of the Keyway project
    /// although it is not from the installation.
    pub fn remarks(&self, used: &Candidate) -> Vec<String> {
        let mut remarks = self.shadows(used);
        let named = matches!(used.origin, SearchOrigin::Explicit | SearchOrigin::Environment);
        let name = used.checked.as_ref().map_or("", |checked| &checked.manifest.name);
        if used.verdict == Verdict::Chosen && named && manifest::is_reserved(name) {
            remarks.push(format!(
                "`{name}` is a name of the Keyway project, used from outside of its installation ({})",
                used.origin
            ));
        }
        remarks
    }

    /// The error for a search that found no library at all.
    pub fn nothing_found(&self) -> Option<LoadError> {
        self.candidates.is_empty().then(|| search::not_found(&self.searched))
    }

    pub(super) fn run(config: &Config) -> Discovery {
        let (searched, found) = config.search.search();
        let records = config.quarantine.list();
        let known = config.verified.read();
        let (disabled, versions) = (config.preferences.disabled(), config.preferences.versions());
        let mut candidates: Vec<Candidate> = Vec::with_capacity(found.len());
        for found in found {
            let mut candidate = examine(found, config);
            if let (Verdict::Chosen, Some(checked)) = (&candidate.verdict, &candidate.checked) {
                let size = checked.id.size;
                if let Some(hash) = known.hash_of(&checked.stamp) {
                    let _ = candidate.hash.set(hash.to_string());
                }
                let hash = || candidate.sha256();
                let allowed = check_name(&candidate, &checked.manifest)
                    .and_then(|()| trust::check_recorded_hash(&candidate.path, hash))
                    .and_then(|()| config.quarantine.check(&records, size, hash));
                let Manifest { name, version, .. } = &checked.manifest;
                let passed = config.judged.passed(hash);
                let failed = passed == Some(false);
                let allowed = allowed.and_then(|()| match passed {
                    Some(true) => Ok(()),
                    _ if config.judged.policy != CertificatePolicy::Require => Ok(()),
                    _ => Err(LoadError::NotCertified { plugin: name.clone(), failed }),
                });
                let own = format!("{name}@{version}");
                candidate.failed = failed;
                if let Err(error) = allowed {
                    candidate.verdict = Verdict::Rejected(error);
                } else if candidate.origin != SearchOrigin::Explicit {
                    if disabled.contains(name) || disabled.contains(&own) {
                        let version = (!disabled.contains(name)).then(|| version.clone());
                        let name = name.clone();
                        candidate.verdict = Verdict::PassedOver(PassedOver::Disabled { name, version });
                    }
                    candidate.chosen = versions.contains(&own);
                }
            }
            candidates.push(candidate);
        }
        // A path that the user named and that cannot be searched is an error, unlike an empty folder.
        for tried in searched.iter().filter(|s| s.origin == SearchOrigin::Explicit) {
            let error = match &tried.skipped {
                Some(Skipped::Unreadable { detail }) => LoadError::Unreadable { detail: detail.clone() },
                _ if !tried.exists => LoadError::NotFound { tried: vec![tried.path.clone()] },
                _ => continue,
            };
            candidates.push(Candidate {
                found_as: tried.path.clone(),
                path: tried.path.clone(),
                origin: SearchOrigin::Explicit,
                checked: None,
                verdict: Verdict::Rejected(error),
                rank: 0,
                chosen: false,
                failed: false,
                hash: OnceLock::new(),
                hashed_now: OnceLock::new(),
            });
        }
        reject_duplicates(&mut candidates);
        let plugins = choose(&mut candidates, config);
        Discovery { searched, candidates, plugins, known }
    }

    /// Records the results of opening a plugin: the libraries that failed, and the library that is `used`.
    pub(super) fn settle(
        &mut self,
        plugin: usize,
        failed: &[(usize, LoadError)],
        used: Option<usize>,
        cpu: &CpuFeatures,
    ) {
        for (index, error) in failed {
            self.candidates[*index].verdict = Verdict::Rejected(error.clone());
        }
        let Some(used) = used.filter(|_| !failed.is_empty()) else { return };
        self.candidates[used].verdict = Verdict::Chosen;
        for index in self.plugins[plugin].iter().filter(|i| **i != used) {
            let candidate = &self.candidates[*index];
            if let (Verdict::PassedOver(_), Some(build), Some(best)) =
                (&candidate.verdict, candidate.build(), self.candidates[used].build())
            {
                let reason = variants::reason(&build, &best, self.candidates[used].path.clone(), cpu);
                self.candidates[*index].verdict = Verdict::PassedOver(reason);
            }
        }
    }
}

/// Examines one file. `Chosen` only means that no reason against it was found yet.
fn examine(found: Found, config: &Config) -> Candidate {
    let (path, checked) = match found.path.canonicalize() {
        Err(e) => (found.path.clone(), Err(LoadError::Unreadable { detail: e.to_string() })),
        Ok(path) => {
            let trusted = config.trust.check_way(&found.path).and_then(|()| config.trust.check(&path));
            let checked =
                trusted.and_then(|()| precheck::check(&path, config.host_abi)).and_then(|checked| {
                    run_path::check(&config.trust, &path, &checked)?;
                    Ok(checked)
                });
            (path, checked)
        }
    };
    let (checked, verdict) = match checked {
        Ok(checked) => (Some(checked), Verdict::Chosen),
        Err(error) => (None, Verdict::Rejected(error)),
    };
    Candidate {
        found_as: found.path,
        path,
        origin: found.origin,
        checked,
        verdict,
        rank: found.searched,
        chosen: false,
        failed: false,
        hash: OnceLock::new(),
        hashed_now: OnceLock::new(),
    }
}

/// Refuses a name of the Keyway project in the user's data folder, unless `keyway backend install` put the library there,
/// which leaves a record of its hash. The other folders belong to the installation, or the user has named them.
fn check_name(candidate: &Candidate, manifest: &Manifest) -> Result<(), LoadError> {
    let stray = candidate.origin == SearchOrigin::User && !trust::record_path(&candidate.path).exists();
    match manifest::is_reserved(&manifest.name) && stray {
        true => Err(LoadError::ReservedName { name: manifest.name.clone() }),
        false => Ok(()),
    }
}

/// Selects the first of several candidates that are the same file or the same build of one plugin. A copy in another folder
/// is not an error, since installations leave copies; another build of the same version may replace the first.
fn reject_duplicates(candidates: &mut [Candidate]) {
    let mut first: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    for index in 0..candidates.len() {
        let candidate = &candidates[index];
        let (Verdict::Chosen, Some(checked)) = (&candidate.verdict, &candidate.checked) else { continue };
        let manifest = &checked.manifest;
        let key = (manifest.name.clone(), manifest.version.clone(), manifest.variant.clone());
        let Some(earlier) = first.get(&key) else {
            first.insert(key, index);
            continue;
        };
        let earlier = &candidates[*earlier];
        let same = same_as(earlier, candidate, checked.id);
        let of = earlier.path.clone();
        candidates[index].verdict = match same {
            _ if earlier.rank == candidate.rank => Verdict::Rejected(LoadError::Duplicate { of, same }),
            SameAs::Plugin => continue,
            _ => Verdict::PassedOver(PassedOver::Copy { used: of }),
        };
    }
}

fn same_as(earlier: &Candidate, later: &Candidate, id: FileId) -> SameAs {
    match &earlier.checked {
        Some(checked) if checked.id == id => SameAs::File,
        // Hashing is worth its cost only for files of the same size.
        Some(checked)
            if checked.id.size == id.size && earlier.sha256().is_ok_and(|h| later.sha256() == Ok(h)) =>
        {
            SameAs::Content
        }
        _ => SameAs::Plugin,
    }
}

/// The verdict for a library whose namesake in use seems to be another plugin, since it lacks most of this one's
/// kernels.
fn namesake(candidate: &Candidate, used: &Candidate) -> Option<PassedOver> {
    let (own, other) = (candidate.checked.as_ref()?, used.checked.as_ref()?);
    fn keys(checked: &Checked) -> HashSet<[&str; 4]> {
        fn of(kernel: &KernelRecord) -> impl Iterator<Item = [&str; 4]> {
            let KernelRecord { op, device, layout, dtypes, .. } = kernel;
            dtypes.iter().map(move |dtype| [op.as_str(), device, layout, dtype])
        }
        checked.kernels.iter().flat_map(of).collect()
    }
    let (own_keys, there) = (keys(own), keys(other));
    let (lacks, of) = (own_keys.difference(&there).count(), own_keys.len());
    let name = own.manifest.name.clone();
    (lacks > of / 2).then(|| PassedOver::Namesake { name, lacks, of, used: used.path.clone() })
}

/// Groups the sound candidates by plugin and chooses one of each group.
fn choose(candidates: &mut [Candidate], config: &Config) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, candidate) in candidates.iter().enumerate() {
        if let (Verdict::Chosen, Some(checked)) = (&candidate.verdict, &candidate.checked) {
            groups.entry(checked.manifest.name.clone()).or_default().push(index);
        }
    }
    let mut plugins = Vec::new();
    for group in groups.into_values() {
        // A path that the user named for this run overrides the version chosen for all runs.
        if group.iter().any(|i| candidates[*i].origin == SearchOrigin::Explicit) {
            group.iter().for_each(|i| candidates[*i].chosen = false);
        }
        let builds: Vec<Build<'_>> = group.iter().filter_map(|i| candidates[*i].build()).collect();
        let order = variants::preference(&builds, &config.cpu);
        let verdicts: Vec<Verdict> = builds
            .iter()
            .enumerate()
            .map(|(i, build)| match order.first() {
                Some(used) if *used == i => Verdict::Chosen,
                Some(used) => {
                    let (own, used_one) = (&candidates[group[i]], &candidates[group[*used]]);
                    let reason = variants::reason(build, &builds[*used], used_one.path.clone(), &config.cpu);
                    Verdict::PassedOver(match reason {
                        PassedOver::NeedsFeatures { .. } => reason,
                        other => namesake(own, used_one).unwrap_or(other),
                    })
                }
                None => {
                    Verdict::Rejected(LoadError::CpuFeatures { missing: config.cpu.missing(build.features) })
                }
            })
            .collect();
        let order: Vec<usize> = order.into_iter().map(|i| group[i]).collect();
        for (index, verdict) in group.iter().zip(verdicts) {
            candidates[*index].verdict = verdict;
        }
        if !order.is_empty() {
            plugins.push(order);
        }
    }
    // In search order, not by the plugins' names.
    plugins.sort_by_key(|order| order[0]);
    plugins
}
