//! Copies of the unruly plugin, each with its own behaviour.

use super::{Ran, library_of, program, run};
use std::path::PathBuf;
use std::process::Command;

/// A folder of copies of the unruly plugin, each with its own behaviour, and a state folder.
pub struct Corpus {
    pub folder: tempfile::TempDir,
    pub state: tempfile::TempDir,
}

/// Replaces each `from` in `bytes`.
fn patch(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    let found: Vec<usize> =
        (0..=bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
    assert!(!found.is_empty());
    found.into_iter().for_each(|at| bytes[at..at + to.len()].copy_from_slice(to));
}

pub fn file(how: &str) -> String {
    format!("lib{}{}", how.replace(':', "-"), std::env::consts::DLL_SUFFIX)
}

impl Corpus {
    pub fn new(kinds: &[&str]) -> Corpus {
        let corpus = Corpus { folder: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() };
        kinds.iter().enumerate().for_each(|(index, how)| corpus.add(index, how));
        corpus
    }

    pub fn add(&self, index: usize, how: &str) {
        let mut bytes = std::fs::read(library_of("keyway_test_unruly")).unwrap();
        patch(&mut bytes, b"keyway.test/unruly-000", format!("keyway.test/unruly-{index:03}").as_bytes());
        patch(
            &mut bytes,
            &[b"keyway-unruly-how=never:nothing".as_slice(), &[b' '; 17]].concat(),
            format!("keyway-unruly-how={how:<30}").as_bytes(),
        );
        std::fs::write(self.path(how), bytes).unwrap();
    }

    pub fn path(&self, how: &str) -> PathBuf {
        self.folder.path().join(file(how))
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program(self.folder.path());
        command.args(arguments).env("XDG_STATE_HOME", self.state.path());
        command.env("XDG_CONFIG_HOME", self.state.path().join("config"));
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        run(self.command(arguments))
    }

    pub fn records(&self) -> usize {
        std::fs::read_dir(self.state.path().join("keyway/quarantine")).map_or(0, |entries| entries.count())
    }
}

/// The verdict and the message of each library, by its file name, in a report of `doctor` or `list`.
pub fn verdict(report: &serde_json::Value, how: &str) -> (String, String) {
    let all = report["backends"].as_array().or(report["discovery"]["candidates"].as_array()).unwrap();
    let name = file(how);
    let of = all.iter().find(|c| c["found_as"].as_str().unwrap().ends_with(&name));
    let of = of.unwrap_or_else(|| panic!("{name} is not in the report"));
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
    (text(&of["outcome"]["verdict"]), text(&of["message"]))
}
