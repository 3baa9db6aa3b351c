//! `keyway backend remove`: removes a library from a folder of backends, with its side files.

use super::install::{Where, is_installed_as};
use super::no_backend;
use super::sources::{HASH, KNOWN_FAILURES};
use crate::failure::Failure;
use crate::installed::{self, Choice};
use crate::screen::Screen;
use keyway::dispatcher::loader::precheck::Checked;
use keyway::dispatcher::loader::search::SUFFIX;
use keyway::dispatcher::loader::variants::compare_versions;
use keyway::dispatcher::loader::{HOST_ABI, precheck, side};
use keyway_conformance::certificate::Certificate;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The options of `keyway backend remove`.
#[derive(clap::Args)]
pub struct Options {
    /// The backend's name, as `keyway backend list` shows it, or the path or file name of an installed library.
    name: String,
    /// Only this version.
    #[arg(long)]
    version: Option<String>,
    /// All versions, where there are several.
    #[arg(long, conflicts_with = "version")]
    all: bool,
    #[command(flatten)]
    destination: Where,
}

/// Removes a backend.
///
/// # Errors
/// A backend that is not in the folder; a file that cannot be removed.
pub fn run(options: &Options, choice: &Choice, screen: &mut Screen) -> Result<(), Failure> {
    let folder = options.destination.folder()?;
    let locked = side::lock_folder(&folder);
    let _locked = locked.map_err(|e| Failure::Backend(format!("cannot remove `{}`: {e}", options.name)))?;
    let found = libraries(&folder, options);
    if found.is_empty() {
        let discovery = installed::discover(choice);
        let elsewhere = discovery
            .candidates
            .iter()
            .find(|c| c.checked.as_ref().is_some_and(|checked| checked.manifest.name == options.name));
        let path = Path::new(&options.name);
        return Err(match elsewhere {
            None if options.name.contains('/') && path.is_file() => Failure::Usage(format!(
                "{} is not in {}, the folder from which libraries are removed; name its folder with `--dir`",
                path.display(),
                folder.display()
            )),
            None => no_backend(&options.name, &discovery),
            Some(other) => Failure::Usage(format!(
                "`{}`{} is not in {}, but there is {}; name its folder with `--dir`",
                options.name,
                options.version.as_ref().map(|v| format!(" {v}")).unwrap_or_default(),
                folder.display(),
                other.found_as.display()
            )),
        });
    }
    let versions = versions(&found);
    if versions.len() > 1 && options.version.is_none() && !options.all {
        return Err(Failure::Usage(format!(
            "there are {} versions of `{}` in {}: {}; choose one with `--version`, or `--all`",
            versions.len(),
            options.name,
            folder.display(),
            versions.join(", ")
        )));
    }
    let failures = found.iter().filter_map(|library| match remove(library) {
        Ok(()) => {
            screen.line(format!("removed {}", library.display()));
            None
        }
        Err(error) => Some(Failure::Backend(format!("cannot remove {}: {error}", library.display()))),
    });
    Failure::all(failures.collect())
}

fn libraries(folder: &Path, options: &Options) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.retain(|path| {
        if path.extension() != Some(SUFFIX.as_ref()) {
            return false;
        }
        if path.file_name() == Some(options.name.as_ref()) || is_at(path, Path::new(&options.name)) {
            return options.version.is_none();
        }
        match precheck::check(path, HOST_ABI) {
            Ok(Checked { manifest, .. }) => {
                manifest.name == options.name
                    && options.version.as_ref().is_none_or(|v| *v == manifest.version)
            }
            // A damaged library is identified only by its file name.
            Err(_) => is_installed_as(path, &options.name, options.version.as_deref()),
        }
    });
    paths
}

/// The version numbers of these libraries, the highest first; a damaged library has none.
fn versions(libraries: &[PathBuf]) -> Vec<String> {
    let checked = libraries.iter().filter_map(|path| precheck::check(path, HOST_ABI).ok());
    let mut found: Vec<String> = checked.map(|checked| checked.manifest.version).collect();
    found.sort_by(|a, b| compare_versions(b, a).then_with(|| b.cmp(a)));
    found.dedup();
    found
}

/// Whether a path names a library of the folder: the same name in the same folder, with links resolved.
fn is_at(library: &Path, named: &Path) -> bool {
    let folder = |path: &Path| path.parent()?.canonicalize().ok();
    library.file_name() == named.file_name() && folder(library).is_some_and(|own| folder(named) == Some(own))
}

/// Removes the library first: its side files have no effect without it.
fn remove(library: &Path) -> std::io::Result<()> {
    std::fs::remove_file(library)?;
    let mut hash = library.as_os_str().to_os_string();
    hash.push(format!(".{HASH}"));
    for side in [hash.into(), Certificate::beside(library), library.with_extension(KNOWN_FAILURES)] {
        match std::fs::remove_file(side) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
