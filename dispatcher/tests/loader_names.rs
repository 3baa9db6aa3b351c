//! Selection among several libraries of one name, and reserved names.

mod loader_support;

use keyway_dispatcher::loader::{
    CertificatePolicy, Config, Discovery, Judged, LoadError, Loader, PassedOver, Preferences, SearchPaths,
    Verdict,
};
use loader_support::*;
use std::path::PathBuf;

const NAME: &[u8] = b"keyway.test/minimal";
/// A name of the project, of the same length.
const OURS: &[u8] = b"keyway-minimal-test";

/// The user's data folder and the installation's, and a program that looks into both.
struct Folders {
    folder: Folder,
    config: Config,
}

impl Folders {
    fn new() -> Folders {
        let folder = Folder::empty();
        for part in ["data/keyway/backends", "dist/backends", "named"] {
            std::fs::create_dir_all(folder.path().join(part)).unwrap();
        }
        let search = SearchPaths {
            data_home: Some(folder.path().join("data")),
            program: Some(folder.path().join("dist/bin/keyway")),
            ..SearchPaths::default()
        };
        let preferences = Preferences { file: Some(folder.path().join("preferences.json")) };
        let judged = Judged { folder: Some(folder.path().join("judged")), ..Judged::default() };
        let config = Config { search, preferences, judged, ..folder.config() };
        Folders { folder, config }
    }

    fn add(&self, name: &str, bytes: &[u8]) -> PathBuf {
        self.folder.add(name, bytes)
    }

    /// As `keyway backend install` does.
    fn install(&self, bytes: &[u8]) -> PathBuf {
        let path = self.add("data/keyway/backends/user.so", bytes);
        let hash = keyway_dispatcher::loader::trust::sha256_file(&path).unwrap();
        self.add("data/keyway/backends/user.so.sha256", format!("{hash}  user.so\n").as_bytes());
        path
    }

    fn discover(&self) -> Discovery {
        Loader::new(self.config.clone()).discover()
    }
}

fn verdict<'a>(discovery: &'a Discovery, name: &str) -> &'a Verdict {
    &discovery.candidates.iter().find(|c| c.found_as.ends_with(name)).expect("it was found").verdict
}

fn version(bytes: &[u8], text: &[u8; 5]) -> Vec<u8> {
    patched(bytes, b"\"version\":\"0.1.0\"", &[b"\"version\":\"", &text[..], b"\""].concat())
}

#[test]
fn a_name_of_the_project_is_not_taken_from_what_was_copied_into_the_data_folder() {
    let mut folders = Folders::new();
    let ours = patched(&minimal(), NAME, OURS);
    folders.add("data/keyway/backends/user.so", &ours);
    let bundled = folders.add("dist/backends/ours.so", &ours);
    let discovery = folders.discover();
    let Verdict::Rejected(error) = verdict(&discovery, "user.so") else { panic!("{discovery:?}") };
    assert_eq!(*error, LoadError::ReservedName { name: "keyway-minimal-test".to_string() });
    for part in ["`keyway-minimal-test`", "domain/name", "--reserved-name", "its author"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(*verdict(&discovery, "ours.so"), Verdict::Chosen);
    assert_eq!(discovery.remarks(discovery.chosen().next().unwrap()), [""; 0]);
    // One that was installed comes first, as the data folder does.
    folders.install(&ours);
    let discovery = folders.discover();
    assert_eq!(*verdict(&discovery, "user.so"), Verdict::Chosen);
    assert!(matches!(verdict(&discovery, "ours.so"), Verdict::PassedOver(PassedOver::Copy { .. })));
    // A path that the user names is accepted, with a remark.
    folders.config.search = SearchPaths::only(vec![bundled]);
    let discovery = folders.discover();
    let remarks = discovery.remarks(discovery.chosen().next().unwrap());
    assert!(remarks.len() == 1 && remarks[0].contains("outside of its installation"), "{remarks:?}");
}

#[test]
fn an_older_library_in_an_earlier_path_reports_that_it_shadows_a_newer_one() {
    let folders = Folders::new();
    let used = folders.install(&minimal());
    folders.add("dist/backends/new.so", &version(&minimal(), b"0.2.0"));
    let discovery = folders.discover();
    let reason = PassedOver::EarlierPath { version: "0.1.0".to_string(), older: true, used: used.clone() };
    assert_eq!(*verdict(&discovery, "new.so"), Verdict::PassedOver(reason.clone()));
    assert!(reason.to_string().contains("although it is older; remove it, or choose this one"), "{reason}");
    let shadows = discovery.shadows(discovery.chosen().next().unwrap());
    assert!(shadows.len() == 1 && shadows[0].starts_with("shadows keyway.test/minimal 0.2.0 in "));
    assert!(shadows[0].ends_with("new.so, which is newer"), "{shadows:?}");
    // The error of a call that no backend serves.
    let lacking = discovery.lacking().unwrap();
    let said = format!("new.so is shadowed by {}", used.display());
    assert!(lacking.contains("keyway.test/minimal 0.2.0 in ") && lacking.contains(&said), "{lacking}");
}

#[test]
fn a_version_that_the_user_chose_or_disabled_counts_before_paths() {
    let mut folders = Folders::new();
    folders.install(&minimal());
    let newer = folders.add("dist/backends/new.so", &version(&minimal(), b"0.2.0"));
    let preferences = folders.config.preferences.clone();
    preferences.set_version("keyway.test/minimal", Some("0.2.0")).unwrap();
    let discovery = folders.discover();
    assert_eq!(*verdict(&discovery, "new.so"), Verdict::Chosen);
    let reason = PassedOver::NotTheChosen { version: "0.2.0".to_string(), used: newer };
    assert_eq!(*verdict(&discovery, "user.so"), Verdict::PassedOver(reason));
    // A path that is named for this run comes first.
    folders.config.search.explicit = vec![folders.add("named/a.so", &version(&minimal(), b"0.0.9"))];
    assert_eq!(*verdict(&folders.discover(), "named/a.so"), Verdict::Chosen);
    folders.config.search.explicit.clear();
    // A version that is not there chooses nothing.
    preferences.set_version("keyway.test/minimal", Some("9.0.0")).unwrap();
    assert_eq!(*verdict(&folders.discover(), "user.so"), Verdict::Chosen);
    preferences.set_disabled("keyway.test/minimal", Some("0.1.0"), true).unwrap();
    let discovery = folders.discover();
    assert_eq!(*verdict(&discovery, "new.so"), Verdict::Chosen);
    let Verdict::PassedOver(reason) = verdict(&discovery, "user.so") else { panic!("{discovery:?}") };
    assert!(reason.to_string().contains("enable keyway.test/minimal --version 0.1.0"), "{reason}");
}

#[test]
fn what_failed_the_suite_here_is_passed_over_for_an_older_version_or_refused() {
    let mut folders = Folders::new();
    let new = folders.add("dist/backends/new.so", &version(&minimal(), b"0.2.0"));
    std::fs::create_dir(folders.folder.path().join("judged")).unwrap();
    let judge = |library: &PathBuf, green: bool| {
        let hash = keyway_dispatcher::loader::trust::sha256_file(library).unwrap();
        folders.add(&format!("judged/{hash}.json"), format!("{{\"green\":{green}}}").as_bytes());
    };
    judge(&new, false);
    // Without another one it is used, with a warning.
    let discovery = folders.discover();
    assert!(discovery.chosen().next().unwrap().failed_suite());
    let old = folders.add("dist/backends/old.so", &minimal());
    let discovery = folders.discover();
    assert_eq!(*verdict(&discovery, "old.so"), Verdict::Chosen);
    let reason = PassedOver::FailedSuite { version: "0.1.0".to_string(), used: old.clone() };
    assert!(reason.to_string().contains("failed the conformance suite on this machine"), "{reason}");
    assert_eq!(*verdict(&discovery, "new.so"), Verdict::PassedOver(reason));
    judge(&old, true);
    let with = |folders: &mut Folders, policy| {
        folders.config.judged.policy = policy;
        folders.discover()
    };
    let discovery = with(&mut folders, CertificatePolicy::Require);
    assert_eq!(*verdict(&discovery, "old.so"), Verdict::Chosen);
    let refused = |failed| {
        let plugin = "keyway.test/minimal".to_string();
        Verdict::Rejected(LoadError::NotCertified { plugin, failed })
    };
    assert_eq!(*verdict(&discovery, "new.so"), refused(true));
    let third = folders.add("dist/backends/third.so", &version(&minimal(), b"0.3.0"));
    assert_eq!(*verdict(&folders.discover(), "third.so"), refused(false));
    std::fs::remove_file(third).unwrap();
    assert_eq!(*verdict(&with(&mut folders, CertificatePolicy::Off), "new.so"), Verdict::Chosen);
}
