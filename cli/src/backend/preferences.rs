//! `keyway backend prefer`, `use`, `rollback`, `enable` and `disable`: preferences for every later run, stored in one file.

use super::{names, no_backend};
use crate::failure::Failure;
use crate::screen::Screen;
use keyway::dispatcher::loader::variants::compare_versions;
use keyway::dispatcher::loader::{Candidate, Discovery, Preferences};
use std::path::PathBuf;

/// The options of `keyway backend prefer`.
#[derive(clap::Args)]
pub struct Prefer {
    /// Its name, as `keyway backend list` shows it.
    name: String,
    /// Do not prefer it any longer.
    #[arg(long)]
    not: bool,
}

/// The options of `keyway backend use`.
#[derive(clap::Args)]
pub struct Use {
    /// Its name, as `keyway backend list` shows it.
    name: String,
    /// The version; one of those that are installed.
    #[arg(required_unless_present = "not")]
    version: Option<String>,
    /// Choose no version: the first folder of the search order decides, and the highest version in it.
    #[arg(long, conflicts_with = "version")]
    not: bool,
}

/// The options of `keyway backend rollback`.
#[derive(clap::Args)]
pub struct Rollback {
    /// Its name, as `keyway backend list` shows it.
    name: String,
}

/// The options of `keyway backend enable` and `disable`.
#[derive(clap::Args)]
pub struct Switch {
    /// Its name, as `keyway backend list` shows it.
    name: String,
    /// Only this version of it.
    #[arg(long)]
    version: Option<String>,
}

/// The user's preferences, and the file that stores them.
fn preferences() -> Result<(Preferences, PathBuf), Failure> {
    let preferences = Preferences::of_user();
    let file = preferences.file.clone().ok_or_else(|| {
        Failure::Backend(
            "there is no folder for preferences, because HOME is not set; set it, or XDG_CONFIG_HOME, to an absolute path"
                .to_string(),
        )
    })?;
    Ok((preferences, file))
}

/// Changes the preferences, and prints the resulting state.
fn keep(
    screen: &mut Screen,
    change: impl FnOnce(&Preferences) -> std::io::Result<bool>,
    what: &str,
) -> Result<(), Failure> {
    let (preferences, file) = preferences()?;
    let changed = change(&preferences)
        .map_err(|error| Failure::Backend(format!("cannot write {}: {error}", file.display())))?;
    let since = if changed { "from the next run on" } else { "as before" };
    screen.line(format!("{what} {since} (stored in {})", file.display()));
    Ok(())
}

/// The libraries of a name.
fn of_name<'a>(name: &'a str, discovery: &'a Discovery) -> impl Iterator<Item = &'a Candidate> {
    let is_of = move |c: &&Candidate| c.checked.as_ref().is_some_and(|checked| checked.manifest.name == name);
    discovery.candidates.iter().filter(is_of)
}

/// The versions of a backend that were found, the highest first.
fn versions<'a>(name: &'a str, discovery: &'a Discovery) -> Result<Vec<&'a str>, Failure> {
    let mut found: Vec<&str> = of_name(name, discovery)
        .filter_map(|c| c.checked.as_ref().map(|checked| checked.manifest.version.as_str()))
        .collect();
    found.sort_by(|a, b| compare_versions(b, a).then_with(|| b.cmp(a)));
    found.dedup();
    if found.is_empty() { Err(no_backend(name, discovery)) } else { Ok(found) }
}

fn no_version(name: &str, version: &str, there: &[&str]) -> Failure {
    Failure::Usage(format!("there is no version {version} of `{name}`; there: {}", there.join(", ")))
}

/// Sets or clears the preference for a backend.
///
/// # Errors
/// A backend that does not exist, a file that cannot be written.
pub fn prefer(options: &Prefer, discovery: &Discovery, screen: &mut Screen) -> Result<(), Failure> {
    let Prefer { name, not } = options;
    if !not && !names(discovery).contains(&name.as_str()) {
        return Err(no_backend(name, discovery));
    }
    let state = if *not { "no longer preferred" } else { "preferred" };
    keep(screen, |preferences| preferences.set(name, !not).map(|()| true), &format!("{name}: {state}"))
}

/// Chooses a version.
///
/// # Errors
/// As [`prefer`], and a version that does not exist.
pub fn choose(options: &Use, discovery: &Discovery, screen: &mut Screen) -> Result<(), Failure> {
    let name = &options.name;
    let Some(version) = &options.version else {
        return keep(
            screen,
            |preferences| preferences.set_version(name, None),
            &format!("{name}: no version is chosen"),
        );
    };
    let there = versions(name, discovery)?;
    if !there.contains(&version.as_str()) {
        return Err(no_version(name, version, &there));
    }
    keep(
        screen,
        |preferences| preferences.set_version(name, Some(version)),
        &format!("{name}: version {version} is used"),
    )
}

/// Selects the next version below the current one.
///
/// # Errors
/// As [`prefer`], and a backend without an older version.
pub fn roll_back(options: &Rollback, discovery: &Discovery, screen: &mut Screen) -> Result<(), Failure> {
    let name = &options.name;
    let there = versions(name, discovery)?;
    let used = discovery.chosen().filter_map(|c| c.checked.as_ref()).find(|c| c.manifest.name == *name);
    let Some(used) = used.map(|checked| checked.manifest.version.as_str()) else {
        let there = there.join(", ");
        return Err(Failure::Usage(format!("no version of `{name}` is used; there: {there}")));
    };
    match there.iter().find(|version| compare_versions(version, used).is_lt()) {
        Some(older) => keep(
            screen,
            |preferences| preferences.set_version(name, Some(older)),
            &format!("{name}: version {older} is used instead of {used}"),
        ),
        None => Err(Failure::Usage(format!(
            "there is no version of `{name}` below {used}, which is used; there: {}",
            there.join(", ")
        ))),
    }
}

/// Disables a backend or one version of it, or enables it.
///
/// # Errors
/// As [`choose`].
pub fn switch(
    options: &Switch,
    disabled: bool,
    discovery: &Discovery,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let (name, version) = (&options.name, options.version.as_deref());
    let listed = Preferences::of_user().disabled();
    let title = version.map_or_else(|| name.clone(), |version| format!("{name} {version}"));
    // A backend that is no longer installed can still be removed from the list.
    let of_list = |one: &String| one == name || one.starts_with(&format!("{name}@"));
    if disabled || !listed.iter().any(of_list) {
        let there = versions(name, discovery)?;
        if let Some(version) = version.filter(|version| !there.contains(version)) {
            return Err(no_version(name, version, &there));
        }
    }
    if !disabled && version.is_some() && listed.contains(name) {
        return Err(Failure::Usage(format!("all of `{name}` is disabled; enable it without `--version`")));
    }
    let state = if disabled { "disabled" } else { "enabled" };
    keep(
        screen,
        |preferences| preferences.set_disabled(name, version, disabled),
        &format!("{title}: {state}"),
    )
}
