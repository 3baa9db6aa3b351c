//! Checks the folders in which the system's loader looks for needed libraries (`DT_RPATH`, `DT_RUNPATH`, and names with a
//! slash): code from them runs with the library's privileges, so they are checked by the same rules as the library's own
//! folder, and so are the dependencies of the needed libraries.
//!
//! Libraries in none of these folders are found in the system's folders.

use super::elf::{self, Inspected};
use super::error::LoadError;
use super::precheck::{self, Checked};
use super::reason::Distrust;
use super::trust::TrustPolicy;
use object::read::ReadCache;
use std::path::{Path, PathBuf};

/// The maximum number of libraries examined.
const MAX_LIBRARIES: usize = 256;

/// A library, and the dependencies and folders in its file.
struct Needing {
    path: PathBuf,
    needed: Vec<String>,
    run_path: Vec<String>,
}

/// Checks the folders that a library names, the needed libraries in them, and their dependencies recursively; `path` is the
/// library's canonical path.
pub(super) fn check(policy: &TrustPolicy, path: &Path, checked: &Checked) -> Result<(), LoadError> {
    let (needed, run_path) = (checked.needed.clone(), checked.run_path.clone());
    let mut libraries = vec![Needing { path: path.to_path_buf(), needed, run_path }];
    // A `DT_RPATH` also applies to indirect dependencies.
    let mut folders: Vec<String> = Vec::new();
    let mut next = 0;
    while let Some(library) = libraries.get(next) {
        next += 1;
        let untrusted = |entry: &str, why| LoadError::Untrusted {
            why: Distrust::RunPath { entry: super::manifest::excerpt(entry, 200), why },
        };
        for entry in &library.run_path {
            one(policy, &library.path, entry, false).map_err(|why| untrusted(entry, why))?;
        }
        let own = library.run_path.iter().map(|folder| folder.trim_end_matches('/'));
        let own: Vec<String> = own.map(|folder| expanded(&library.path, folder)).collect();
        folders.extend(own.into_iter().filter(|folder| !folder.contains('$')));
        folders.sort_unstable();
        folders.dedup();
        let mut found = Vec::new();
        for name in &library.needed {
            if name.contains('/') {
                let why = one(policy, &library.path, name, true);
                why.map_err(|why| untrusted(name, why))?;
                found.push(expanded(&library.path, name));
                continue;
            }
            for file in folders.iter().flat_map(|folder| files(folder, name)) {
                one(policy, &library.path, &file, true).map_err(|why| untrusted(&file, why))?;
                found.push(file);
            }
        }
        for file in found.iter().filter_map(|file| Path::new(file).canonicalize().ok()) {
            if libraries.len() < MAX_LIBRARIES && libraries.iter().all(|known| known.path != file) {
                libraries.extend(inspected(file));
            }
        }
    }
    Ok(())
}

/// The files that a name may refer to in a folder: the plain one, and hwcaps variants.
fn files(folder: &str, name: &str) -> Vec<String> {
    let levels = std::fs::read_dir(format!("{folder}/glibc-hwcaps")).into_iter().flatten().flatten();
    let levels = levels.map(|level| level.path().join(name).to_string_lossy().into_owned());
    // A dangling link counts as existing.
    let there = |file: &String| Path::new(file).symlink_metadata().is_ok();
    std::iter::once(format!("{folder}/{name}")).chain(levels).filter(there).collect()
}

/// The dependencies of a needed library. An unreadable library has none: it fails in the trial when it is loaded.
fn inspected(path: PathBuf) -> Option<Needing> {
    let (file, _) = precheck::open_regular(&path).ok()?;
    let Inspected { needed, run_path, .. } = elf::inspect(&ReadCache::new(file), &[]).ok()?;
    Some(Needing { path, needed, run_path })
}

/// An entry with `$ORIGIN` expanded to the library's folder.
fn expanded(library: &Path, entry: &str) -> String {
    let origin = library.parent().unwrap_or(Path::new("/")).to_string_lossy();
    entry.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin)
}

fn one(policy: &TrustPolicy, library: &Path, entry: &str, is_file: bool) -> Result<(), String> {
    let expanded = expanded(library, entry);
    // The system expands other tokens ($LIB, $PLATFORM): the folder above them must be trusted.
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
    // A user who may create a missing folder may fill it.
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
