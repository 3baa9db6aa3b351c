//! Certificates: a file beside the library that records a run of the suite on it. It is bound to the library, the source of the
//! cases, the profile, the suite and the kind of machine; anyone who can write the library's folder can write it too, so it is
//! trusted on the same terms as the library, and is not a proof by its author. Runs on this machine are also recorded in the
//! user's state folder, by the library's hash: that is a verdict, and a certificate without such a record a claim.

use crate::report::{Coverage, Machine, Report, Status, grouped};
use crate::suite;
use keyway::dispatcher::loader::trust::TrustPolicy;
use keyway::dispatcher::loader::{Judged, side};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// A certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// The version of the suite.
    pub suite: String,
    /// [`suite::digest`]: hash of the source of the cases and of their checks.
    #[serde(default)]
    pub digest: String,
    /// The plugin.
    pub plugin: String,
    /// The plugin's version.
    pub plugin_version: String,
    /// The SHA-256 of the tested library.
    pub sha256: String,
    /// The SHA-256 of the profile's name and of the ids of all cases that were to be run.
    pub cases: String,
    /// The tested tier of ops; `None` for all ops that the library registers.
    pub profile: Option<String>,
    /// The machine.
    pub machine: Machine,
    /// The name of the tested device, if it is not the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Whether every case that was run has the expected outcome.
    pub green: bool,
    /// The number of passed cases in which the library ran a part.
    pub passed: usize,
    /// Cases with a verdict: all except those that the backend does not claim, those that other libraries ran, and those without
    /// an oracle.
    pub judged: usize,
    /// Cases that fail as listed in the known failures; they count as judged, not as passed.
    pub known: usize,
    /// Coverage of the library.
    #[serde(default)]
    pub coverage: Coverage,
    /// Seed of the calls of the family `drawn`, if it was run.
    #[serde(default)]
    pub draws: Option<u64>,
}

/// Status of a library's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Every case as expected.
    Certified {
        /// The tier of ops; absent for all ops that the library registers.
        profile: Option<String>,
        /// Cases that passed.
        passed: usize,
        /// Cases with a verdict.
        judged: usize,
        /// The number of cases that fail as listed in the known failures.
        known: usize,
        /// Coverage of the library.
        coverage: Coverage,
    },
    /// Cases without the expected outcome.
    Failed {
        /// The tier of ops; absent for all ops that the library registers.
        profile: Option<String>,
        /// Cases that passed.
        passed: usize,
        /// Cases with a verdict.
        judged: usize,
    },
    /// A certificate next to the library without a record of a run on this machine.
    Claimed(Box<Standing>),
    /// The certificate is for another build of the library, another suite or another kind of machine.
    Stale,
    /// A file that other users may write, or with inconsistent numbers.
    Disbelieved,
    /// The suite was never run on this library.
    NeverRun,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Standing::Certified { profile, passed, judged, known, coverage } => {
                f.write_str("certified")?;
                if let Some(profile) = profile {
                    write!(f, " for {profile}")?;
                }
                write!(f, " {}/{}", grouped(*passed), grouped(*judged))?;
                match known {
                    0 => {}
                    1 => f.write_str(" with 1 known failure")?,
                    known => write!(f, " with {} known failures", grouped(*known))?,
                }
                if coverage.kernels.is_empty() { Ok(()) } else { write!(f, "; {}", coverage.text()) }
            }
            Standing::Failed { profile, passed, judged } => {
                f.write_str("failed")?;
                if let Some(profile) = profile {
                    write!(f, " for {profile}")?;
                }
                match judged - passed {
                    // A run can be a failure for no other reason.
                    0 => write!(
                        f,
                        ": all {} passed, but its known failures name other cases",
                        grouped(*passed)
                    ),
                    failed => write!(f, " {} of {}", grouped(failed), grouped(*judged)),
                }
            }
            Standing::Claimed(what) => write!(f, "claim: {what}"),
            Standing::Stale => f.write_str("stale"),
            Standing::Disbelieved => f.write_str("not believed"),
            Standing::NeverRun => f.write_str("never run"),
        }
    }
}

impl Certificate {
    /// The certificate of a run; `None` for a run that was restricted or interrupted, that used another seed than the
    /// default, or in which the library ran nothing; and for a run of a training profile that tested no derivative.
    pub fn of(report: &Report) -> Option<Certificate> {
        let count = |status| report.counts.of(status);
        let unjudged =
            [Status::Unsupported, Status::Skipped, Status::ByOthers].map(count).iter().sum::<usize>();
        let certificate = Certificate {
            suite: report.suite.clone(),
            digest: suite::digest().to_string(),
            plugin: report.plugin.clone(),
            plugin_version: report.plugin_version.clone(),
            sha256: report.sha256.clone(),
            cases: report.case_list.clone(),
            profile: report.selection.profile.clone(),
            machine: report.machine.clone(),
            device: report.device_name.clone(),
            green: report.is_green(),
            passed: count(Status::Passed),
            judged: report.counts.total() - unjudged,
            known: count(Status::KnownFailure),
            coverage: report.coverage.clone(),
            draws: report.draws.as_ref().map(|draws| draws.seed),
        };
        let whole = report.selection.is_whole() && !report.interrupted && report.cases.len() == report.wanted;
        let trained = !report.lacks_gradients();
        (whole && trained && certificate.adds_up()).then_some(certificate)
    }

    /// Whether the numbers are consistent.
    fn adds_up(&self) -> bool {
        let Some(rest) = self.judged.checked_sub(self.passed) else { return false };
        let green = self.passed > 0 && self.known == rest;
        self.judged > 0 && self.known <= rest && (!self.green || green)
    }

    /// The path of the certificate of a library: `libx.so` with `libx.so.certificate.json`.
    pub fn beside(library: &Path) -> PathBuf {
        let mut name = library.as_os_str().to_os_string();
        name.push(".certificate.json");
        PathBuf::from(name)
    }

    /// The certificate next to a copy of a library with this hash, if it applies to it; the permissions of the copy's
    /// folder are not checked.
    pub fn of_copy(library: &Path, sha256: &str) -> Option<Certificate> {
        let certificate =
            serde_json::from_slice::<Certificate>(&side::read(&Certificate::beside(library)).ok()?).ok()?;
        let says =
            matches!(certificate.standing(sha256), Standing::Certified { .. } | Standing::Failed { .. });
        says.then_some(certificate)
    }

    /// The certificate next to a library: `None` if it does not exist, an error if it is not trusted.
    fn read(library: &Path, trust: &TrustPolicy) -> Option<Result<Certificate, ()>> {
        let path = Certificate::beside(library).canonicalize().ok()?;
        Some(Certificate::believed(&path, trust).ok_or(()))
    }

    fn believed(path: &Path, trust: &TrustPolicy) -> Option<Certificate> {
        trust.check(path).ok()?;
        serde_json::from_slice::<Certificate>(&side::read(path).ok()?).ok().filter(Certificate::adds_up)
    }

    /// Writes the certificate next to the library atomically, also with concurrent writers. A certificate for a profile
    /// does not replace that of a complete run of the same library. Returns the file, or `None` if it was not replaced.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn store(&self, library: &Path) -> std::io::Result<Option<PathBuf>> {
        let old = Certificate::read(library, &TrustPolicy::of_process()).and_then(Result::ok);
        self.write(Certificate::beside(library), old)
    }

    /// Records in the user's state folder that this machine ran it, as [`store`](Certificate::store) does next to the
    /// library.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn record(&self) -> std::io::Result<Option<PathBuf>> {
        let judged = Judged::of_user();
        let path = judged.record_path(&self.sha256);
        path.map_or(Ok(None), |path| self.write(path, Certificate::recorded(&self.sha256, &judged)))
    }

    fn write(&self, path: PathBuf, old: Option<Certificate>) -> std::io::Result<Option<PathBuf>> {
        let same = |old: &Certificate| {
            (&old.sha256, &old.suite, &old.digest) == (&self.sha256, &self.suite, &self.digest)
        };
        if self.profile.is_some() && old.is_some_and(|old| same(&old) && old.profile.is_none()) {
            return Ok(None);
        }
        side::write(&path, serde_json::to_string_pretty(self)?.as_bytes())?;
        Ok(Some(path))
    }

    /// The record of this machine for a library.
    fn recorded(sha256: &str, judged: &Judged) -> Option<Certificate> {
        serde_json::from_slice::<Certificate>(&judged.read(sha256)?).ok().filter(Certificate::adds_up)
    }

    /// The standing of a library with this hash on this machine.
    pub fn standing(&self, sha256: &str) -> Standing {
        let (passed, judged, known) = (self.passed, self.judged, self.known);
        if !self.adds_up() {
            Standing::Disbelieved
        } else if self.sha256 != sha256
            || self.suite != suite::SUITE_VERSION
            || self.digest != suite::digest()
            || !self.machine.is_like(&Machine::this())
        {
            Standing::Stale
        } else if self.green {
            let coverage = self.coverage.clone();
            Standing::Certified { profile: self.profile.clone(), passed, judged, known, coverage }
        } else {
            Standing::Failed { profile: self.profile.clone(), passed, judged }
        }
    }
}

/// The device that a library was tested on, if its certificate is valid and names one.
pub fn judged_on(library: &Path) -> Option<String> {
    Certificate::read(library, &TrustPolicy::of_process())?.ok()?.device
}

/// The standing of a library: the verdict of a run on this machine, or the claim of any other certificate.
pub fn standing(library: &Path, sha256: impl FnOnce() -> Option<String>) -> Standing {
    standing_by(library, sha256, &TrustPolicy::of_process(), &Judged::of_user())
}

/// Like [`standing`], with another trust policy and other records.
fn standing_by(
    library: &Path,
    sha256: impl FnOnce() -> Option<String>,
    trust: &TrustPolicy,
    judged: &Judged,
) -> Standing {
    let beside = Certificate::read(library, trust);
    if beside.is_none() && !judged.has_records() {
        return Standing::NeverRun;
    }
    let hash = sha256();
    if let Some((own, hash)) =
        hash.as_ref().and_then(|hash| Some((Certificate::recorded(hash, judged)?, hash)))
    {
        return own.standing(hash);
    }
    match beside {
        None => Standing::NeverRun,
        Some(Err(())) => Standing::Disbelieved,
        Some(Ok(certificate)) => match hash.map_or(Standing::Stale, |hash| certificate.standing(&hash)) {
            says @ (Standing::Certified { .. } | Standing::Failed { .. }) => {
                Standing::Claimed(Box::new(says))
            }
            other => other,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn certificate() -> Certificate {
        Certificate {
            suite: suite::SUITE_VERSION.to_string(),
            digest: suite::digest().to_string(),
            plugin: "a".to_string(),
            plugin_version: "1".to_string(),
            sha256: "0".repeat(64),
            cases: "1".repeat(64),
            profile: None,
            machine: Machine::this(),
            device: None,
            green: true,
            passed: 1200,
            judged: 1200,
            known: 0,
            coverage: Coverage::default(),
            draws: None,
        }
    }

    /// A folder for this test, writable by this user alone.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("keyway-certificate-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
        folder
    }

    fn standing_of(certificate: &Certificate) -> String {
        certificate.standing(&"0".repeat(64)).to_string()
    }

    #[test]
    fn known_failures_and_profiles_are_said() {
        assert_eq!(standing_of(&certificate()), "certified 1,200/1,200");
        let known = Certificate { judged: 1203, known: 3, ..certificate() };
        assert_eq!(standing_of(&known), "certified 1,200/1,203 with 3 known failures");
        let kernels = crate::runner::Kernels {
            device: "cpu".to_string(),
            layout: "strided".to_string(),
            registered: 79,
            reached: 79,
        };
        let coverage = Coverage { kernels: vec![kernels], judged: 1200, refused: 1800, known: 0 };
        let text =
            "certified 1,200/1,200; cpu, strided: 79 of 79 kernels reached, 1,800 cases (60 %) refused";
        assert_eq!(standing_of(&Certificate { coverage, ..certificate() }), text);
        let tier = Certificate { profile: Some("train".to_string()), ..certificate() };
        assert_eq!(standing_of(&tier), "certified for train 1,200/1,200");
        let failed = Certificate { green: false, judged: 1210, ..certificate() };
        assert_eq!(standing_of(&failed), "failed 10 of 1,210");
        let listed = Certificate { green: false, ..certificate() };
        assert_eq!(standing_of(&listed), "failed: all 1,200 passed, but its known failures name other cases");
        let nothing = Certificate { green: false, passed: 0, ..certificate() };
        assert_eq!(standing_of(&nothing), "failed 1,200 of 1,200");
        let tier = Certificate { profile: Some("load".to_string()), ..failed };
        assert_eq!(standing_of(&tier), "failed for load 10 of 1,210");
    }

    #[test]
    fn numbers_that_cannot_be_are_not_believed() {
        for wrong in [
            Certificate { passed: 0, judged: 0, ..certificate() },
            Certificate { passed: 1201, ..certificate() },
            Certificate { judged: 1201, ..certificate() },
            Certificate { known: 1, ..certificate() },
            Certificate { passed: 0, known: 1200, ..certificate() },
        ] {
            assert_eq!(standing_of(&wrong), "not believed", "{wrong:?}");
        }
    }

    #[test]
    fn another_library_suite_or_machine_makes_it_stale_but_not_the_number_of_cores() {
        let machine = Machine { cores: 977, ..Machine::this() };
        assert_eq!(standing_of(&Certificate { machine, ..certificate() }), "certified 1,200/1,200");
        let machine = Machine { cpu: "another".to_string(), ..Machine::this() };
        assert_eq!(standing_of(&Certificate { machine, ..certificate() }), "stale");
        assert_eq!(standing_of(&Certificate { suite: "0".to_string(), ..certificate() }), "stale");
        assert_eq!(standing_of(&Certificate { digest: "0".repeat(64), ..certificate() }), "stale");
        assert_eq!(certificate().standing(&"2".repeat(64)), Standing::Stale);
    }

    /// The format of certificates without a digest of the source of the cases.
    #[test]
    fn one_without_the_source_of_its_cases_is_stale() {
        let mut written = serde_json::to_value(certificate()).unwrap();
        written.as_object_mut().unwrap().remove("digest").expect("a digest");
        assert_eq!(standing_of(&serde_json::from_value(written).unwrap()), "stale");
    }

    #[test]
    fn one_that_others_may_write_is_not_believed() {
        let folder = folder("trust");
        let library = folder.join("libx.so");
        let hash = || Some("0".repeat(64));
        let (trust, none) = (TrustPolicy::of_process(), Judged::default());
        let standing_by = |library: &Path, hash: fn() -> Option<String>, trust| {
            super::standing_by(library, hash, trust, &none)
        };
        assert_eq!(standing_by(&library, hash, &trust), Standing::NeverRun);
        let file = certificate().store(&library).unwrap().expect("a file");
        // Without a record of a run on this machine.
        assert_eq!(standing_by(&library, hash, &trust).to_string(), "claim: certified 1,200/1,200");
        let judged = Judged { folder: Some(folder.join("judged")), ..Judged::default() };
        let record = judged.record_path(&"0".repeat(64)).unwrap();
        certificate().write(record, None).unwrap().expect("a file");
        let own = super::standing_by(&library, hash, &trust, &judged);
        assert_eq!(own.to_string(), "certified 1,200/1,200");
        let other = super::standing_by(&library, || Some("1".repeat(64)), &trust, &judged);
        assert_eq!(other, Standing::Stale, "the record is of another content");
        // A certificate for a profile does not replace it.
        let tier = Certificate { profile: Some("infer".to_string()), ..certificate() };
        assert_eq!(tier.store(&library).unwrap(), None);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(standing_by(&library, hash, &trust), Standing::Disbelieved);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&file, "{").unwrap();
        assert_eq!(standing_by(&library, hash, &trust), Standing::Disbelieved);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn programs_that_write_at_once_leave_a_whole_one() {
        let folder = folder("together");
        let library = folder.join("libx.so");
        std::thread::scope(|scope| {
            for passed in 1..9 {
                let own = Certificate { passed, judged: passed, ..certificate() };
                let library = &library;
                scope.spawn(move || (0..50).for_each(|_| drop(own.store(library).unwrap())));
            }
            for _ in 0..200 {
                let (trust, none) = (TrustPolicy::of_process(), Judged::default());
                let now = standing_by(&library, || Some("0".repeat(64)), &trust, &none);
                assert!(matches!(now, Standing::Claimed(_) | Standing::NeverRun), "{now}");
            }
        });
        let left: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
