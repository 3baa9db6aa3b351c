//! Results of the conformance suite on this machine, by the hash of a library.
//!
//! The suite writes a record, the certificate, to the user's state folder for each library that it tested completely. A
//! certificate next to a library is a claim of the file's author and is ignored here.

use super::error::LoadError;
use super::privilege::{home_folder, is_privileged};
use super::side;
use super::trust::is_sha256;
use serde::Deserialize;
use std::ffi::OsStr;
use std::path::PathBuf;

/// The environment variable with the policy.
pub const POLICY_VARIABLE: &str = "KEYWAY_CERTIFICATES";

/// The treatment of a library that failed the suite on this machine, or was never tested on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CertificatePolicy {
    /// A library that did not pass is refused.
    Require,
    /// A library that failed is used only if there is no other build of the plugin, with a warning.
    #[default]
    Warn,
    /// Certificates are ignored.
    Off,
}

impl CertificatePolicy {
    fn parse(text: &OsStr) -> Option<CertificatePolicy> {
        match text.to_str()? {
            "require-certificate" => Some(CertificatePolicy::Require),
            "warn" | "" => Some(CertificatePolicy::Warn),
            "off" => Some(CertificatePolicy::Off),
            _ => None,
        }
    }
}

fn of_environment() -> Option<std::ffi::OsString> {
    std::env::var_os(POLICY_VARIABLE).filter(|_| !is_privileged())
}

/// The error in the value of `KEYWAY_CERTIFICATES`, as one sentence; `None` if there is none, or if the variable is not read.
pub fn problem() -> Option<String> {
    let text = of_environment()?;
    CertificatePolicy::parse(&text).is_none().then(|| {
        format!(
            "{POLICY_VARIABLE}: `{}` ignored, expected `require-certificate`, `warn` or `off`; correct the variable, or unset it",
            text.display()
        )
    })
}

/// The records, and the policy that applies to them.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// The folder of the records; `None` means no records.
    pub folder: Option<PathBuf>,
    /// The policy.
    pub policy: CertificatePolicy,
}

/// The fields of a record that are read.
#[derive(Deserialize)]
struct Record {
    green: bool,
}

impl Judged {
    /// The certificate records of the current user, in `XDG_STATE_HOME` or `~/.local/state`.
    pub fn of_user() -> Judged {
        Judged {
            folder: home_folder("XDG_STATE_HOME", ".local/state").map(|p| p.join("keyway/judged")),
            policy: of_environment().and_then(|text| CertificatePolicy::parse(&text)).unwrap_or_default(),
        }
    }

    /// The path of the record of a hash.
    pub fn record_path(&self, sha256: &str) -> Option<PathBuf> {
        self.folder.as_ref().filter(|_| is_sha256(sha256)).map(|folder| folder.join(format!("{sha256}.json")))
    }

    /// The record of a hash; `None` if it does not exist, or if users other than its owner may write it.
    pub fn read(&self, sha256: &str) -> Option<Vec<u8>> {
        side::read_private(&self.record_path(sha256)?).ok()
    }

    /// Whether any record exists, so that libraries must be hashed.
    pub fn has_records(&self) -> bool {
        let entries = self.folder.as_ref().and_then(|folder| std::fs::read_dir(folder).ok());
        entries.is_some_and(|mut entries| entries.next().is_some())
    }

    /// Whether the library of a hash passed; `None` if it was not tested, or if the policy ignores certificates.
    pub(super) fn passed(&self, sha256: impl FnOnce() -> Result<String, LoadError>) -> Option<bool> {
        if self.policy == CertificatePolicy::Off || !self.has_records() {
            return None;
        }
        let record = self.read(&sha256().ok()?)?;
        serde_json::from_slice::<Record>(&record).ok().map(|record| record.green)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_one_of_three_words() {
        for (text, policy) in [
            ("require-certificate", Some(CertificatePolicy::Require)),
            ("warn", Some(CertificatePolicy::Warn)),
            ("", Some(CertificatePolicy::Warn)),
            ("off", Some(CertificatePolicy::Off)),
            ("require", None),
        ] {
            assert_eq!(CertificatePolicy::parse(text.as_ref()), policy, "{text}");
        }
    }

    #[test]
    fn a_record_that_others_may_write_counts_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let judged = Judged { folder: Some(folder.path().join("judged")), ..Judged::default() };
        let hash = "a".repeat(64);
        let passed = |judged: &Judged| judged.passed(|| Ok("a".repeat(64)));
        assert_eq!(judged.passed(|| panic!("nothing need be hashed")), None);
        let record = judged.record_path(&hash).unwrap();
        side::write(&record, br#"{"green": false, "passed": 3}"#).unwrap();
        assert_eq!(passed(&judged), Some(false));
        assert_eq!(passed(&Judged { policy: CertificatePolicy::Off, ..judged.clone() }), None);
        assert_eq!(judged.record_path("../../etc/passwd"), None);
        std::fs::set_permissions(&record, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        assert_eq!(passed(&judged), None);
    }
}
