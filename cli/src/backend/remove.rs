//! `keyway backend remove`: takes a library out of a folder of backends, with what lies beside it.

use super::install::Where;
use super::no_backend;
use super::sources::{HASH, KNOWN_FAILURES};
use crate::failure::Failure;
use crate::installed::{self, Choice};
use crate::screen::Screen;
use keyway::dispatcher::loader::search::SUFFIX;
use keyway::dispatcher::loader::{HOST_ABI, precheck, side};
use keyway_conformance::certificate::Certificate;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What to remove.
#[derive(clap::Args)]
pub struct Options {
    /// The backend's name, as `keyway backend list` shows it, or the file name of a library.
    name: String,
    /// Only this version.
    #[arg(long)]
    version: Option<String>,
    #[command(flatten)]
    place: Where,
}

/// Removes a backend.
///
/// # Errors
/// A backend that is not in the folder; a file that cannot be removed.
pub fn run(options: &Options, choice: &Choice, screen: &mut Screen) -> Result<(), Failure> {
    let folder = options.place.folder()?;
    let locked = side::lock_folder(&folder);
    let _locked = locked.map_err(|e| Failure::Backend(format!("cannot remove `{}`: {e}", options.name)))?;
    let found = libraries(&folder, options);
    if found.is_empty() {
        let discovery = installed::discover(choice);
        let elsewhere = discovery
            .candidates
            .iter()
            .find(|c| c.checked.as_ref().is_some_and(|checked| checked.manifest.name == options.name));
        return Err(match elsewhere {
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
        // A damaged library has no name but its file's.
        if path.file_name() == Some(options.name.as_ref()) {
            return options.version.is_none();
        }
        precheck::check(path, HOST_ABI).is_ok_and(|checked| {
            let manifest = &checked.manifest;
            manifest.name == options.name && options.version.as_ref().is_none_or(|v| *v == manifest.version)
        })
    });
    paths
}

/// The library goes first: what lies beside it is nothing without it.
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
