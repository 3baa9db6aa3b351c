//! `keyway backend verify`: tries libraries in their own processes, even those that are known good.

use super::install::is_installed_as;
use super::no_backend;
use crate::failure::Failure;
use crate::installed::{Choice, is_harmless};
use crate::screen::Screen;
use keyway::dispatcher::loader::{Candidate, Config, LoadError, Loader, Trial, Verdict};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The options of `keyway backend verify`.
#[derive(clap::Args)]
pub struct Options {
    /// Names of backends, or paths of libraries and folders; every backend that is found if left out.
    names: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Verified {
    path: String,
    name: Option<String>,
    version: Option<String>,
    variant: Option<String>,
    /// Whether it can be loaded; null if it was not tried.
    sound: Option<bool>,
    message: String,
}

/// Verifies backends.
///
/// # Errors
/// A backend that does not exist; those that cannot be used, after the report; a missing `keyway-probe`.
pub fn run(options: &Options, choice: &Choice, screen: &mut Screen) -> Result<(), Failure> {
    let (paths, names): (Vec<&String>, Vec<&String>) = options.names.iter().partition(|name| is_path(name));
    let mut results = Vec::new();
    let mut untried = None;
    if !names.is_empty() || paths.is_empty() {
        let loader = Loader::new(Config::of_process(choice.backends.clone()));
        let discovery = loader.discover();
        let named = |candidate: &Candidate, name: &str| match &candidate.checked {
            Some(checked) => checked.manifest.name == name,
            None => is_installed_as(&candidate.path, name, None),
        };
        if let Some(name) = names.iter().find(|name| !discovery.candidates.iter().any(|c| named(c, name))) {
            return Err(no_backend(name, &discovery));
        }
        let chosen = discovery
            .candidates
            .iter()
            .filter(|c| names.is_empty() || names.iter().any(|name| named(c, name)));
        results.extend(chosen.map(|candidate| verify(&loader, candidate, &mut untried)));
    }
    if !paths.is_empty() {
        let loader = Loader::new(Config::only(paths.iter().map(PathBuf::from).collect()));
        let discovery = loader.discover();
        results.extend(discovery.candidates.iter().map(|candidate| verify(&loader, candidate, &mut untried)));
    }
    if options.json {
        screen.json(&results);
    } else {
        for result in &results {
            let title =
                [&result.name, &result.version, &result.variant].map(|part| part.clone().unwrap_or_default());
            screen.line(format!("{} ({})", title.join(" ").trim(), result.path));
            screen.line(format!("  {}", result.message));
        }
    }
    if let Some(why) = untried {
        return Err(Failure::Backend(format!(
            "no library can be tried without `keyway-probe`: {why}; put it there, or name it with KEYWAY_PROBE"
        )));
    }
    match results.iter().filter(|result| result.sound == Some(false)).count() {
        0 => Ok(()),
        count => Err(Failure::Rejected { count }),
    }
}

/// Whether a text is a path. A backend's name may contain a slash, so only an existing path counts.
fn is_path(text: &str) -> bool {
    (text.starts_with(['.', '/']) || text.ends_with(std::env::consts::DLL_SUFFIX) || text.contains('/'))
        && Path::new(text).exists()
}

fn verify(loader: &Loader, candidate: &Candidate, untried: &mut Option<String>) -> Verified {
    let (sound, message) = match &candidate.verdict {
        // Records of quarantine are what this command retries; every other reason rejects the library before it is opened.
        Verdict::Rejected(error) if !matches!(error, LoadError::Quarantined { .. }) => {
            (Some(is_harmless(error)), error.to_string())
        }
        Verdict::PassedOver(reason) if needs_another_processor(candidate, loader) => {
            (None, format!("not tried: {reason}"))
        }
        _ => match loader.verify(&candidate.path) {
            Trial::Sound => (Some(true), "sound: loaded, registered and asked for its devices".to_string()),
            // The usual advice to retry does not apply here.
            Trial::Failed(LoadError::Quarantined { reason, record, .. }) => {
                let record = match record.as_os_str().is_empty() {
                    true => String::new(),
                    false => format!(" (recorded in {})", record.display()),
                };
                let message =
                    format!("tried just now, and quarantined because {reason}{record}; update the plugin");
                (Some(false), message)
            }
            Trial::Failed(error) => (Some(false), error.to_string()),
            Trial::Untried(why) => {
                let message = format!("not tried: {why}");
                *untried = Some(why);
                (None, message)
            }
            _ => (None, "not tried".to_string()),
        },
    };
    let manifest = candidate.checked.as_ref().map(|checked| &checked.manifest);
    Verified {
        path: candidate.found_as.display().to_string(),
        name: manifest.map(|m| m.name.clone()),
        version: manifest.map(|m| m.version.clone()),
        variant: manifest.map(|m| m.variant.clone()),
        sound,
        message,
    }
}

fn needs_another_processor(candidate: &Candidate, loader: &Loader) -> bool {
    let needs = candidate.checked.as_ref().map(|checked| &checked.manifest.cpu_features);
    needs.is_some_and(|features| !loader.config().cpu.missing(features).is_empty())
}
