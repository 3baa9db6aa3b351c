//! The folders in which the system's loader looks for what a library needs (`DT_RPATH`, `DT_RUNPATH`, and names with a
//! slash): code from there runs with the library's, so that they are trusted by the same rules.
//!
//! What the needed libraries need in their turn is not looked at: they are the system's, or lie in a folder that was.

use super::error::LoadError;
use super::precheck::Checked;
use super::reason::Distrust;
use super::trust::TrustPolicy;
use std::path::{Path, PathBuf};

/// Checks the folders that a library names, and what it needs of that which lies there; `path` is its own, canonical.
pub(super) fn check(policy: &TrustPolicy, path: &Path, checked: &Checked) -> Result<(), LoadError> {
    let named = checked.needed.iter().filter(|name| name.contains('/')).map(|name| (name, true));
    for (entry, is_file) in checked.run_path.iter().map(|entry| (entry, false)).chain(named) {
        one(policy, path, entry, is_file).map_err(|why| LoadError::Untrusted {
            why: Distrust::RunPath { entry: super::manifest::excerpt(entry, 200), why },
        })?;
    }
    let plain = || checked.needed.iter().filter(|name| !name.contains('/'));
    for folder in &checked.run_path {
        for entry in plain().map(|name| format!("{}/{name}", folder.trim_end_matches('/'))) {
            if there(path, &entry) {
                one(policy, path, &entry, true).map_err(|why| LoadError::Untrusted {
                    why: Distrust::RunPath { entry: super::manifest::excerpt(&entry, 200), why },
                })?;
            }
        }
    }
    Ok(())
}

/// An entry with the folder of the library put in.
fn expanded(library: &Path, entry: &str) -> String {
    let origin = library.parent().unwrap_or(Path::new("/")).to_string_lossy();
    entry.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin)
}

/// Whether a file lies at an entry, as far as that can be told; a link that leads nowhere does.
fn there(library: &Path, entry: &str) -> bool {
    Path::new(&expanded(library, entry)).symlink_metadata().is_ok()
}

fn one(policy: &TrustPolicy, library: &Path, entry: &str, is_file: bool) -> Result<(), String> {
    let expanded = expanded(library, entry);
    // What other words stand for is the system's to say ($LIB, $PLATFORM): the folder above must be sound.
    let known = expanded.split_once('$').map_or(expanded.as_str(), |(head, _)| head);
    let folder = Path::new(known);
    if !folder.is_absolute() {
        return Err("it depends on the working directory".to_string());
    }
    if is_file && known.len() == expanded.len() && folder.exists() {
        let file = folder.canonicalize().map_err(|error| error.to_string())?;
        return policy
            .check_way(folder)
            .and_then(|()| policy.check(&file))
            .map_err(|error| error.to_string());
    }
    policy.check_way(folder).map_err(|error| error.to_string())?;
    // Who may make a folder that is missing may fill it.
    let there = folder.ancestors().find_map(|above| above.canonicalize().ok().filter(|path| path.is_dir()));
    let there: PathBuf = there.unwrap_or_else(|| PathBuf::from("/"));
    policy.check_folder(&there).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn folders_that_others_can_fill_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (own, open) = (root.join("own"), root.join("open"));
        for (path, mode) in [(&own, 0o755), (&open, 0o1777)] {
            std::fs::create_dir(path).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let policy = TrustPolicy { program: None, ..TrustPolicy::of_process() };
        let library = own.join("a.so");
        let try_one = |entry: &str, is_file| one(&policy, &library, entry, is_file);
        let (own, open) = (own.display(), open.display());
        for sound in
            ["$ORIGIN", "${ORIGIN}/../own", "/usr/lib", "/nowhere/at/all", "$ORIGIN/missing", "/usr/$LIB"]
        {
            assert_eq!(try_one(sound, false), Ok(()), "{sound}");
        }
        assert_eq!(try_one(&format!("{own}/missing"), false), Ok(()));
        for (entry, part) in [
            (String::new(), "working directory"),
            ("lib".to_string(), "working directory"),
            ("$LIB/x".to_string(), "working directory"),
            (open.to_string(), "lets everybody"),
            (format!("{open}/missing/deeper"), "lets everybody"),
            (format!("{open}/$PLATFORM"), "lets everybody"),
            ("$ORIGIN/../open".to_string(), "lets everybody"),
        ] {
            let error = try_one(&entry, false).unwrap_err();
            assert!(error.contains(part), "{entry}: {error}");
        }
        assert!(try_one("./libx.so", true).unwrap_err().contains("working directory"));
        assert!(try_one(&format!("{open}/libx.so"), true).unwrap_err().contains("lets everybody"));
        assert_eq!(try_one(&format!("{own}/libx.so"), true), Ok(()));
    }
}
