//! Starts the runtime with the backends that are installed, and says what is missing.

use crate::failure::Failure;
use crate::screen;
use keyway::dispatcher::loader::{Config, Discovery, Loader, Place, Searched};
use keyway::runtime::{self, Backends};
use std::path::{Path, PathBuf};

/// Looks for backends without opening any of them.
pub fn discover(explicit: &[PathBuf]) -> Discovery {
    Loader::new(Config::of_process(explicit.to_vec())).discover()
}

/// Loads the backends. Libraries that cannot be used are named on standard error.
///
/// # Errors
/// Two definitions of one op.
pub fn start(explicit: &[PathBuf]) -> Result<&'static Backends, Failure> {
    let backends = start_quietly(explicit)?;
    for rejected in &backends.rejected {
        screen::warning(rejected);
    }
    Ok(backends)
}

/// As [`start`], and names nothing.
///
/// # Errors
/// As [`start`].
pub fn start_quietly(explicit: &[PathBuf]) -> Result<&'static Backends, Failure> {
    runtime::start_with(explicit)?;
    runtime::backends().ok_or_else(|| Failure::NoBackend("the runtime did not start".to_string()))
}

/// The folder into which a user would put a backend: beside the program if that exists, else the user's own.
fn folder(searched: &[Searched]) -> Option<&Path> {
    let of = |place: Place| searched.iter().filter(move |s| s.place == place);
    let existing = of(Place::Program).find(|s| s.exists);
    existing
        .or_else(|| of(Place::Program).last())
        .or_else(|| of(Place::User).next())
        .map(|s| s.path.as_path())
}

/// What to do where a device has no backend, as one clause.
pub fn advice(device: &str, discovery: &Discovery) -> String {
    let library =
        format!("{}keyway_backend_{device}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let into = folder(&discovery.searched)
        .map_or_else(|| "a folder of backends".to_string(), |folder| folder.display().to_string());
    format!(
        "put its library (such as {library}) into {into}, or name its folder with `--backends` or KEYWAY_BACKEND_PATH"
    )
}
