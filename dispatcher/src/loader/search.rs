//! The search path of plugins, and the files found in each folder.
//!
//! In this order: paths that the user named, `KEYWAY_BACKEND_PATH`, the user's data folder, `backends/` next to the program
//! (for a program in `bin/` also next to that folder), the system's folders. The user's own folder precedes those of the
//! program, so that a faster kernel installed there is used. The working directory is never searched, so a relative entry
//! in the environment is skipped. A process with more privileges than the user who started it ignores the environment.

use super::error::LoadError;
use super::privilege::{home_folder, is_privileged};
use serde::Serialize;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// The environment variable with further folders, separated as in `PATH`.
pub const PATH_VARIABLE: &str = "KEYWAY_BACKEND_PATH";

/// The file extension of shared libraries on this system.
pub const SUFFIX: &str = std::env::consts::DLL_EXTENSION;

/// The origin of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SearchOrigin {
    /// The user, for this run.
    Explicit,
    /// `KEYWAY_BACKEND_PATH`.
    Environment,
    /// The user's data folder.
    User,
    /// Next to the program.
    Program,
    /// The system.
    System,
}

impl fmt::Display for SearchOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SearchOrigin::Explicit => "named for this run",
            SearchOrigin::Environment => PATH_VARIABLE,
            SearchOrigin::Program => "beside the program",
            SearchOrigin::User => "user's data folder",
            SearchOrigin::System => "system",
        })
    }
}

/// The reason why a path was not searched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Skipped {
    /// The path depends on the working directory.
    NotAbsolute,
    /// The path is from the environment of a process with raised privileges.
    Privileged,
    /// An earlier path leads to the same folder or file.
    SearchedBefore,
    /// The system refused to read it.
    Unreadable {
        /// The system's message.
        detail: String,
    },
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Skipped::NotAbsolute => f.write_str("ignored: not an absolute path"),
            Skipped::Privileged => f.write_str("ignored: this process has raised rights"),
            Skipped::SearchedBefore => f.write_str("searched before under another path"),
            Skipped::Unreadable { detail } => write!(f, "cannot be read: {detail}"),
        }
    }
}

/// A path that was searched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Searched {
    /// The origin of the path.
    pub origin: SearchOrigin,
    /// The path.
    #[serde(serialize_with = "crate::base::lossy::path")]
    pub path: PathBuf,
    /// Whether the path exists.
    pub exists: bool,
    /// The number of libraries found.
    pub files: usize,
    /// The reason why it was not searched; `None` if it was.
    pub skipped: Option<Skipped>,
}

/// A library file found in one of the folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The index of its path in the list of searched paths: a lower one takes precedence.
    pub searched: usize,
    /// The origin of the path.
    pub origin: SearchOrigin,
    /// The file as found.
    pub path: PathBuf,
}

/// All inputs of the search. Tests fill them in; programs use [`SearchPaths::of_process`].
#[derive(Debug, Clone, Default)]
pub struct SearchPaths {
    /// Files and folders that the user named; relative ones are relative to the working directory.
    pub explicit: Vec<PathBuf>,
    /// Folders and files from `KEYWAY_BACKEND_PATH`.
    pub environment: Vec<PathBuf>,
    /// The program's file.
    pub program: Option<PathBuf>,
    /// The user's data folder, such as `~/.local/share`.
    pub data_home: Option<PathBuf>,
    /// The system's folders of backends.
    pub system: Vec<PathBuf>,
    /// Whether the process has more rights than the user who started it.
    pub privileged: bool,
}

impl SearchPaths {
    /// The search paths of this process, with `explicit` ones first.
    pub fn of_process(explicit: Vec<PathBuf>) -> SearchPaths {
        let environment = std::env::var_os(PATH_VARIABLE).unwrap_or_default();
        SearchPaths {
            explicit,
            environment: std::env::split_paths(&environment).collect(),
            program: std::env::current_exe().ok(),
            data_home: home_folder("XDG_DATA_HOME", ".local/share"),
            system: ["/usr/local/lib/keyway/backends", "/usr/lib/keyway/backends"]
                .map(PathBuf::from)
                .to_vec(),
            privileged: is_privileged(),
        }
    }

    /// Search paths with only the given ones.
    pub fn only(explicit: Vec<PathBuf>) -> SearchPaths {
        SearchPaths { explicit, ..SearchPaths::default() }
    }

    /// Every path in the order of search.
    pub fn paths(&self) -> Vec<(SearchOrigin, PathBuf)> {
        let mut paths: Vec<(SearchOrigin, PathBuf)> = Vec::new();
        let given =
            |list: &[PathBuf]| list.iter().filter(|p| !p.as_os_str().is_empty()).cloned().collect::<Vec<_>>();
        paths.extend(given(&self.explicit).into_iter().map(|p| (SearchOrigin::Explicit, p)));
        paths.extend(given(&self.environment).into_iter().map(|p| (SearchOrigin::Environment, p)));
        paths.extend(self.data_home.iter().map(|home| (SearchOrigin::User, home.join("keyway/backends"))));
        if let Some(folder) = self.program.as_deref().and_then(Path::parent) {
            paths.push((SearchOrigin::Program, folder.join("backends")));
            if folder.file_name() == Some(OsStr::new("bin"))
                && let Some(above) = folder.parent()
            {
                paths.push((SearchOrigin::Program, above.join("backends")));
            }
        }
        paths.extend(self.system.iter().map(|p| (SearchOrigin::System, p.clone())));
        paths
    }

    /// Searches every path. Files are ordered by search path, then by name.
    pub fn search(&self) -> (Vec<Searched>, Vec<Found>) {
        let mut searched = Vec::new();
        let mut found = Vec::new();
        let mut before = Vec::new();
        for (origin, path) in self.paths() {
            let canonical = path.canonicalize().ok();
            let result = if origin == SearchOrigin::Environment && self.privileged {
                Err(Skipped::Privileged)
            } else if origin != SearchOrigin::Explicit && path.is_relative() {
                Err(Skipped::NotAbsolute)
            } else if canonical.is_some() && before.contains(&canonical) {
                Err(Skipped::SearchedBefore)
            } else {
                before.push(canonical);
                libraries(&path)
            };
            let (files, skipped) = match result {
                Ok(files) => (files, None),
                Err(reason) => (None, Some(reason)),
            };
            let count = files.as_ref().map_or(0, Vec::len);
            let exists = files.is_some()
                || matches!(skipped, Some(Skipped::Unreadable { .. } | Skipped::SearchedBefore));
            let index = searched.len();
            found.extend(files.unwrap_or_default().into_iter().map(|path| Found {
                searched: index,
                origin,
                path,
            }));
            searched.push(Searched { origin, path, exists, files: count, skipped });
        }
        (searched, found)
    }
}

/// The libraries at `path`: itself if it is not a folder, otherwise its files with the library suffix. `None` if it does
/// not exist.
fn libraries(path: &Path) -> Result<Option<Vec<PathBuf>>, Skipped> {
    let unreadable = |e: std::io::Error| Skipped::Unreadable { detail: e.to_string() };
    match std::fs::metadata(path) {
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => return Err(unreadable(e)),
        Ok(meta) if !meta.is_dir() => return Ok(Some(vec![path.to_path_buf()])),
        Ok(_) => {}
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        // A dangling symlink is listed, so that it is reported rather than ignored.
        if file.extension() == Some(OsStr::new(SUFFIX)) && !file.is_dir() {
            files.push(file);
        }
    }
    files.sort();
    Ok(Some(files))
}

/// The entries of `KEYWAY_BACKEND_PATH` that were skipped for being relative, as one sentence; `None` if there is none.
pub fn relative_entries(searched: &[Searched]) -> Option<String> {
    let left_out = searched.iter().filter(|s| matches!(s.skipped, Some(Skipped::NotAbsolute)));
    let entries: Vec<String> = left_out.map(|s| format!("`{}`", s.path.display())).collect();
    (!entries.is_empty()).then(|| {
        format!(
            "{PATH_VARIABLE}: {} ignored, not absolute: the working directory is never searched; give the whole path",
            entries.join(", ")
        )
    })
}

/// The entries of `KEYWAY_BACKEND_PATH` that do not exist, as one sentence; `None` if there is none.
pub fn missing_entries(searched: &[Searched]) -> Option<String> {
    let missing = |s: &&Searched| s.origin == SearchOrigin::Environment && s.skipped.is_none() && !s.exists;
    let entries: Vec<String> =
        searched.iter().filter(missing).map(|s| format!("`{}`", s.path.display())).collect();
    (!entries.is_empty()).then(|| {
        format!("{PATH_VARIABLE}: nothing is at {}; correct the variable, or unset it", entries.join(", "))
    })
}

/// The error for a search that found no library at all.
pub fn not_found(searched: &[Searched]) -> LoadError {
    LoadError::NotFound { tried: searched.iter().map(|s| s.path.clone()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths_of(paths: &SearchPaths) -> Vec<String> {
        paths.paths().into_iter().map(|(origin, path)| format!("{origin:?} {}", path.display())).collect()
    }

    #[test]
    fn paths_come_in_the_documented_order() {
        let paths = SearchPaths {
            explicit: vec!["x".into()],
            environment: vec!["/env".into(), "".into()],
            program: Some("/opt/keyway/bin/keyway".into()),
            data_home: Some("/users/u/.local/share".into()),
            system: vec!["/usr/lib/keyway/backends".into()],
            privileged: false,
        };
        assert_eq!(
            paths_of(&paths),
            [
                "Explicit x",
                "Environment /env",
                "User /users/u/.local/share/keyway/backends",
                "Program /opt/keyway/bin/backends",
                "Program /opt/keyway/backends",
                "System /usr/lib/keyway/backends",
            ]
        );
    }

    #[test]
    fn only_a_bin_folder_is_stepped_out_of() {
        let paths = SearchPaths { program: Some("/opt/tool/keyway".into()), ..SearchPaths::default() };
        assert_eq!(paths_of(&paths), ["Program /opt/tool/backends"]);
    }

    #[test]
    fn environment_entries_are_skipped_with_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(format!("a.{SUFFIX}")), "x").unwrap();
        let mut paths = SearchPaths {
            environment: vec![folder.path().into(), "relative".into(), "/nowhere/at/all".into()],
            ..SearchPaths::default()
        };
        let (searched, found) = paths.search();
        assert_eq!(found.len(), 1);
        assert_eq!(searched[0].files, 1);
        assert_eq!(searched[1].skipped, Some(Skipped::NotAbsolute));
        assert!(!searched[2].exists && searched[2].skipped.is_none());
        paths.environment.push(folder.path().join("."));
        let (searched, found) = paths.search();
        assert_eq!((found.len(), &searched[3].skipped), (1, &Some(Skipped::SearchedBefore)));
        paths.privileged = true;
        let (searched, found) = paths.search();
        assert!(found.is_empty());
        assert!(searched.iter().all(|s| s.skipped == Some(Skipped::Privileged)));
    }

    #[test]
    fn files_are_sorted_and_of_the_right_suffix() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b", "a", "c"] {
            std::fs::write(folder.path().join(format!("{name}.{SUFFIX}")), "x").unwrap();
        }
        std::fs::write(folder.path().join("README.md"), "x").unwrap();
        std::fs::create_dir(folder.path().join(format!("d.{SUFFIX}"))).unwrap();
        let (_, found) = SearchPaths::only(vec![folder.path().into()]).search();
        let names: Vec<_> = found.iter().map(|f| f.path.file_stem().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["a", "b", "c"]);
    }
}
