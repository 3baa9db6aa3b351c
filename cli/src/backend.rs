//! `keyway backend`: what is installed and where it is looked for. A library is opened only if it is known good, or passes
//! a trial in a process of its own.

mod install;
mod remove;
mod sources;
mod verify;

use crate::devices;
use crate::failure::Failure;
use crate::installed;
use crate::installed::Choice;
use crate::screen::{self, Screen};
use comfy_table::ContentArrangement;
use keyway::dispatcher::loader::precheck::Checked;
use keyway::dispatcher::loader::{
    Candidate, Discovery, Preferences, Searched, Verdict, missing_entries, probe, relative_entries,
};
use keyway::dispatcher::registry::edit_distance;
use keyway_conformance::certificate::{self, Standing};
use serde::Serialize;
use std::path::PathBuf;

/// What to list.
#[derive(clap::Subcommand)]
pub enum Command {
    /// The backends that were found, and which of them are used.
    List(Options),
    /// The places where backends are looked for, in order.
    Paths(Options),
    /// Prefer a backend where several serve the same, in this and every later run.
    Prefer(Prefer),
    /// Install a backend from a library, a folder or an archive (.tar, .tar.gz).
    Install(install::Options),
    /// Remove an installed backend.
    Remove(remove::Options),
    /// Use a backend again that was disabled.
    Enable(Named),
    /// Leave a backend out of every later run, wherever it lies; one that is named with `--backends` is used all the same.
    Disable(Named),
    /// Try backends in a process of their own, whatever is known of them, and clear their records of quarantine.
    Verify(verify::Options),
}

/// A backend.
#[derive(clap::Args)]
pub struct Named {
    /// Its name, as `keyway backend list` shows it.
    name: String,
}

/// Which backend to prefer.
#[derive(clap::Args)]
pub struct Prefer {
    /// Its name, as `keyway backend list` shows it.
    name: String,
    /// Do not prefer it any longer.
    #[arg(long)]
    not: bool,
}

/// How to list it.
#[derive(clap::Args)]
pub struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    candidate: &'a Candidate,
    conformance: String,
    /// Kernels written against another signature than their op has here.
    left_out: Vec<String>,
    /// What no call reaches, a clause each.
    without_effect: Vec<String>,
}

#[derive(Serialize)]
struct List<'a> {
    backends: Vec<Listed<'a>>,
    /// Why no backend was loaded, so that `chosen` is what the files say.
    untried: Option<String>,
    /// None before the backends are loaded, because one of them has not passed its trial.
    devices: Vec<devices::Found>,
    searched: &'a [Searched],
}

/// Lists backends or places.
///
/// # Errors
/// A backend that does not exist, or that cannot be used, installed or removed.
pub fn run(command: &Command, choice: &Choice, screen: &mut Screen) -> Result<(), Failure> {
    match command {
        Command::Install(options) => return install::run(options, choice, screen),
        Command::Remove(options) => return remove::run(options, choice, screen),
        Command::Verify(options) => return verify::run(options, choice, screen),
        _ => {}
    }
    let (discovery, untried) = match command {
        Command::List(_) => installed::tried(choice)?,
        _ => (installed::discover(choice), None),
    };
    match command {
        Command::Install(_) | Command::Remove(_) | Command::Verify(_) => {}
        Command::List(Options { json: true }) => {
            let listed = |candidate| Listed {
                candidate,
                conformance: standing(candidate).to_string(),
                left_out: installed::left_out(candidate),
                without_effect: installed::unreached(candidate),
            };
            let backends = discovery.candidates.iter().map(listed).collect();
            let devices = devices::all();
            screen.json(&List { backends, untried, devices, searched: &discovery.searched });
            return installed::check(&discovery);
        }
        Command::List(_) => {
            list(&discovery, untried.as_deref(), screen);
            return installed::check(&discovery);
        }
        Command::Paths(Options { json: true }) => screen.json(&discovery.searched),
        Command::Paths(_) => paths(&discovery.searched, screen),
        Command::Prefer(options) => return prefer(options, &discovery, screen),
        Command::Enable(Named { name }) => return switch(name, false, &discovery, screen),
        Command::Disable(Named { name }) => return switch(name, true, &discovery, screen),
    }
    Ok(())
}

/// The names of the backends that were found.
fn names(discovery: &Discovery) -> Vec<&str> {
    let checked = discovery.candidates.iter().filter_map(|c| c.checked.as_ref());
    let mut there: Vec<&str> = checked.map(|checked| checked.manifest.name.as_str()).collect();
    there.sort_unstable();
    there.dedup();
    there
}

/// The backend that was perhaps meant: one of this name below some domain, or the one that differs by the fewest letters.
fn meant<'a>(name: &str, there: &[&'a str]) -> Option<&'a str> {
    let last = |full: &str| full.rsplit('/').next().unwrap_or(full).to_lowercase();
    let wanted = last(name);
    if let Some(full) = there.iter().copied().find(|full| last(full) == wanted) {
        return Some(full);
    }
    let letters = |full: &str| edit_distance(name, full).min(edit_distance(&wanted, &last(full)));
    let nearest = there.iter().copied().min_by_key(|full| letters(full))?;
    (letters(nearest) <= wanted.len() / 8 + 1).then_some(nearest)
}

/// The failure for a name that no backend has.
fn no_backend(name: &str, discovery: &Discovery) -> Failure {
    let there = names(discovery);
    let there = if there.is_empty() { "none is installed".to_string() } else { there.join(", ") };
    let would = crate::known::would_serve(name).map(|would| format!("; {would}")).unwrap_or_default();
    let meant = meant(name, &names(discovery)).map(|other| format!(" (did you mean `{other}`?)"));
    let meant = meant.unwrap_or_default();
    Failure::Usage(format!("there is no backend `{name}`{meant}; there: {there}{would}"))
}

/// The user's preferences, and the file that keeps them.
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

/// Disables a backend, or enables it.
fn switch(name: &str, disabled: bool, discovery: &Discovery, screen: &mut Screen) -> Result<(), Failure> {
    let (preferences, file) = preferences()?;
    // One that is no longer installed can still be taken off the list.
    let listed = preferences.disabled().iter().any(|other| other == name);
    if !names(discovery).contains(&name) && !listed {
        return Err(no_backend(name, discovery));
    }
    let changed = preferences
        .set_disabled(name, disabled)
        .map_err(|error| Failure::Backend(format!("cannot write {}: {error}", file.display())))?;
    let state = if disabled { "disabled" } else { "enabled" };
    let since = if changed { "from the next run on" } else { "as before" };
    screen.line(format!("{name}: {state} {since} (kept in {})", file.display()));
    Ok(())
}

fn prefer(options: &Prefer, discovery: &Discovery, screen: &mut Screen) -> Result<(), Failure> {
    let name = &options.name;
    if !options.not && !names(discovery).contains(&name.as_str()) {
        return Err(no_backend(name, discovery));
    }
    let (preferences, file) = preferences()?;
    preferences
        .set(name, !options.not)
        .map_err(|error| Failure::Backend(format!("cannot write {}: {error}", file.display())))?;
    let now = if options.not { "no longer preferred" } else { "preferred from the next run on" };
    screen.line(format!("{name}: {now} (kept in {})", file.display()));
    Ok(())
}

fn list(discovery: &Discovery, untried: Option<&str>, screen: &mut Screen) {
    if discovery.candidates.is_empty() {
        screen.line("No backend is installed. These places were searched:\n");
        paths(&discovery.searched, screen);
        amiss(&discovery.searched, screen);
        screen.line(format!("\nTo install one, {}.", installed::advice("cpu", discovery)));
        return;
    }
    let mut table =
        screen::table(&["BACKEND", "VERSION", "VARIANT", "KERNELS", "STATE", "CONFORMANCE"], &[3]);
    // Each row is one line.
    table.set_content_arrangement(ContentArrangement::Disabled);
    let mut libraries = Vec::new();
    let preferences = Preferences::of_user();
    let preferred = preferences.preferred();
    for candidate in &discovery.candidates {
        let on = certificate::judged_on(&candidate.path)
            .map_or_else(String::new, |on| format!(", judged on {on}"));
        let library = format!("{}{on}", candidate.found_as.display());
        let chosen = matches!(candidate.verdict, Verdict::Chosen);
        let name = candidate.checked.as_ref().map(|c| c.manifest.name.as_str());
        let state = if chosen && untried.is_some() {
            "not tried".to_string()
        } else if preferred.iter().any(|p| chosen && Some(p.as_str()) == name) {
            "preferred".to_string()
        } else {
            state(&candidate.verdict).to_string()
        };
        let row = match &candidate.checked {
            Some(checked) => {
                let m = &checked.manifest;
                libraries.push(match m.devices.is_empty() {
                    true => library,
                    false => format!("{} in {}: {library}", m.devices.join(", "), m.layouts.join(", ")),
                });
                let kernels = checked.n_kernels().to_string();
                [
                    m.name.clone(),
                    m.version.clone(),
                    m.variant.clone(),
                    kernels,
                    state,
                    standing(candidate).to_string(),
                ]
            }
            None => {
                libraries.push(library);
                ["?", "", "", "", &state, ""].map(str::to_string)
            }
        };
        table.add_row(row);
    }
    // What each serves, and its library, stand below it.
    let mut below = libraries.iter().peekable();
    for (row, line) in table.lines().enumerate() {
        screen.whole_line(line.trim_end());
        if let Some(text) = below.next_if(|_| row > 0) {
            screen.line(format!("    {text}"));
        }
    }
    let stale =
        discovery.candidates.iter().find(|c| c.checked.is_some() && matches!(standing(c), Standing::Stale));
    if let Some(checked) = stale.and_then(|candidate| candidate.checked.as_ref()) {
        screen.line(format!(
            "\nstale: what was judged was another build, by other cases or on another kind of processor; `keyway conformance {}` judges \
             it again.",
            checked.manifest.name
        ));
    }
    if let Some(why) = untried.filter(|_| discovery.chosen().next().is_some()) {
        screen.line(format!(
            "\nNo library was loaded, because {why}. `keyway doctor` loads them all the same, as a program does."
        ));
    }
    devices::list(screen);
    amiss(&discovery.searched, screen);
    for checked in discovery.candidates.iter().filter_map(|c| c.checked.as_ref()) {
        if !checked.interposers.is_empty() {
            screen.line(format!("\n{}: interposers {}", checked.manifest.name, interposers(checked)));
        }
    }
    for candidate in &discovery.candidates {
        if let Some(reason) = candidate.reason() {
            let name = candidate.found_as.file_name().unwrap_or(candidate.found_as.as_os_str());
            screen.line(format!("\n{}: {reason}", name.to_string_lossy()));
        }
        let name = candidate.found_as.file_name().unwrap_or(candidate.found_as.as_os_str()).to_string_lossy();
        let left_out = installed::left_out(candidate);
        if !left_out.is_empty() {
            screen.line(format!(
                "\n{name}: kernels written against other signatures are left out: {}",
                left_out.join(", ")
            ));
        }
        let unreached = installed::unreached(candidate);
        if !unreached.is_empty() {
            screen.line(format!("\n{name}: without effect: {}", unreached.join("; ")));
        }
    }
}

/// The names of a library's interposers, as its file states them.
pub fn interposers(checked: &Checked) -> String {
    checked.interposers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What the conformance suite's certificate says of a library. The library is hashed only if it has one.
fn standing(candidate: &Candidate) -> Standing {
    certificate::standing(&candidate.path, || candidate.sha256().ok())
}

/// A verdict in one word.
pub fn state(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Chosen => "used",
        Verdict::PassedOver(_) => "passed over",
        Verdict::Rejected(_) => "rejected",
        _ => "unknown",
    }
}

/// Says which entries of the environment lead nowhere, and what of the preferences cannot be used.
pub fn amiss(searched: &[Searched], screen: &mut Screen) {
    let preferences = Preferences::of_user().problem();
    let amiss = [relative_entries(searched), missing_entries(searched), preferences, probe::problem()];
    for line in amiss.into_iter().flatten() {
        screen.line(format!("\n{line}"));
    }
}

/// Lists places with what was found there.
pub fn paths(searched: &[Searched], screen: &mut Screen) {
    let mut table = screen::table(&["PLACE", "FOUND"], &[]);
    for place in searched {
        table.add_row([place.place.to_string(), found(place)]);
    }
    let paths: Vec<String> = searched.iter().map(|place| place.path.display().to_string()).collect();
    screen.table_of_paths(table, "PATH", &paths);
}

fn found(searched: &Searched) -> String {
    match (&searched.skipped, searched.exists, searched.files) {
        (Some(reason), _, _) => reason.to_string(),
        (None, false, _) => "not there".to_string(),
        (None, true, 0) => "no library".to_string(),
        (None, true, 1) => "1 library".to_string(),
        (None, true, n) => format!("{n} libraries"),
    }
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn a_name_without_its_domain_or_with_a_slip_leads_to_the_backend() {
        let there = ["keyway-cpu", "example.org/fast-exp"];
        for (name, expected) in [
            ("fast-exp", Some("example.org/fast-exp")),
            ("Fast-Exp", Some("example.org/fast-exp")),
            ("fast-ex", Some("example.org/fast-exp")),
            ("other.org/fast-exp", Some("example.org/fast-exp")),
            ("keyway-gpu", Some("keyway-cpu")),
            ("keyway-cuda", None),
            ("something", None),
        ] {
            assert_eq!(meant(name, &there), expected, "{name}");
        }
        assert_eq!(meant("fast-exp", &[]), None);
    }
}
