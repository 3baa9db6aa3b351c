//! `keyway backend`: lists, installs, verifies and removes backends, and shows the search path. A library is opened only if it
//! is known good or passes a trial in its own process.

mod install;
mod preferences;
mod remove;
mod sources;
mod verify;

use crate::devices;
use crate::failure::Failure;
use crate::installed;
use crate::installed::Choice;
use crate::installed::Declared;
use crate::numbers::ratio;
use crate::screen::{self, Screen};
use comfy_table::ContentArrangement;
use keyway::dispatcher::loader::manifest::InterposerRecord;
use keyway::dispatcher::loader::{
    Candidate, Discovery, Preferences, Searched, Verdict, judged, missing_entries, probe, relative_entries,
};
use keyway::dispatcher::registry::edit_distance;
use keyway_conformance::certificate::{self, Standing};
use serde::Serialize;

/// The subcommands of `keyway backend`.
#[derive(clap::Subcommand)]
pub enum Command {
    /// The backends that were found, and which of them are used.
    List(Options),
    /// The search path of backends, in order.
    Paths(Options),
    /// Prefer a backend where several serve the same, in this and every later run.
    Prefer(preferences::Prefer),
    /// Install a backend from a library, a folder or an archive (.tar, .tar.gz).
    Install(install::Options),
    /// Remove an installed backend.
    Remove(remove::Options),
    /// Use one version of a backend in this and every later run, wherever it is installed.
    Use(preferences::Use),
    /// Use the next older version of a backend that is installed.
    Rollback(preferences::Rollback),
    /// Use a backend again that was disabled.
    Enable(preferences::Switch),
    /// Leave a backend out of every later run, wherever it is installed; one that is named with `--backends` is used all the same.
    Disable(preferences::Switch),
    /// Try backends in a process of their own, whatever is known of them, and clear their records of quarantine.
    Verify(verify::Options),
}

/// The options of `keyway backend list`.
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
    /// Kernels whose registered signature differs from the op's signature in this build.
    left_out: Vec<String>,
    /// Registrations that no call can select, one clause each.
    without_effect: Vec<String>,
    /// Declared times of ops in memory formats and layouts.
    preferences: Vec<Declared>,
    /// Remarks on a library in use, one clause each: the libraries that it shadows, and a name of the form `keyway-*`.
    remarks: Vec<String>,
}

#[derive(Serialize)]
struct List<'a> {
    backends: Vec<Listed<'a>>,
    /// The reason why no backend was loaded, in which case `chosen` is based only on the files.
    untried: Option<String>,
    /// The devices; empty if the backends were not loaded because one of them has not passed its trial.
    devices: Vec<devices::Found>,
    searched: &'a [Searched],
}

/// Lists backends or search paths.
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
                preferences: installed::declared_by(candidate),
                remarks: discovery.remarks(candidate),
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
        Command::Prefer(options) => return preferences::prefer(options, &discovery, screen),
        Command::Use(options) => return preferences::choose(options, &discovery, screen),
        Command::Rollback(options) => return preferences::roll_back(options, &discovery, screen),
        Command::Enable(options) => return preferences::switch(options, false, &discovery, screen),
        Command::Disable(options) => return preferences::switch(options, true, &discovery, screen),
    }
    Ok(())
}

/// The names of the discovered backends.
fn names(discovery: &Discovery) -> Vec<&str> {
    let checked = discovery.candidates.iter().filter_map(|c| c.checked.as_ref());
    let mut there: Vec<&str> = checked.map(|checked| checked.manifest.name.as_str()).collect();
    there.sort_unstable();
    there.dedup();
    there
}

/// The closest backend name: the same name in some domain, or the one with the smallest edit distance.
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

/// The failure for a name that matches no backend.
fn no_backend(name: &str, discovery: &Discovery) -> Failure {
    let there = names(discovery);
    let there = if there.is_empty() { "none is installed".to_string() } else { there.join(", ") };
    let would = crate::known::would_serve(name).map(|would| format!("; {would}")).unwrap_or_default();
    let meant = meant(name, &names(discovery)).map(|other| format!(" (did you mean `{other}`?)"));
    let meant = meant.unwrap_or_default();
    Failure::Usage(format!("there is no backend `{name}`{meant}; there: {there}{would}"))
}

fn list(discovery: &Discovery, untried: Option<&str>, screen: &mut Screen) {
    if discovery.candidates.is_empty() {
        screen.line("No backend is installed. These paths were searched:\n");
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
        } else if installed::serves_nothing(candidate) {
            "used, no kernel".to_string()
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
    // The ops that each serves and its library are printed below it.
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
            "\nstale: the certificate is for another build, other cases or another kind of processor; `keyway conformance {}` judges \
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
    for candidate in &discovery.candidates {
        if let Some(found) = interposers(candidate, untried.is_none()) {
            let name = candidate.checked.as_ref().map_or("", |checked| &checked.manifest.name);
            screen.line(format!("\n{name}: interposers {found}"));
        }
    }
    for candidate in &discovery.candidates {
        let declared = installed::declared_by(candidate);
        if !declared.is_empty() {
            let one = |p: &Declared| {
                let other = if p.used { "" } else { ", another plugin's is used" };
                format!("{} on {} in {} ({}{other})", p.op, p.device, p.format, ratio(p.cost))
            };
            let name = candidate.checked.as_ref().map_or("", |checked| &checked.manifest.name);
            let all: Vec<String> = declared.iter().map(one).collect();
            screen.line(format!("\n{name}: times relative to row-major order: {}", all.join(", ")));
        }
    }
    for candidate in &discovery.candidates {
        if let Some(reason) = candidate.reason() {
            let name = candidate.found_as.file_name().unwrap_or(candidate.found_as.as_os_str());
            screen.line(format!("\n{}: {reason}", name.to_string_lossy()));
        }
        let name = candidate.found_as.file_name().unwrap_or(candidate.found_as.as_os_str()).to_string_lossy();
        for remark in discovery.remarks(candidate) {
            screen.line(format!("\n{name}: {remark}"));
        }
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

/// The names of a library's interposers, each with whether it acts on calls; `None` if the library has none. Interposers of an
/// unused library are not loaded.
pub fn interposers(candidate: &Candidate, loaded: bool) -> Option<String> {
    let checked = candidate.checked.as_ref().filter(|checked| !checked.interposers.is_empty())?;
    let used = loaded && candidate.verdict == Verdict::Chosen;
    let one = |found: &InterposerRecord| {
        let state = match (used, found.default_on) {
            (true, true) => "acts",
            (true, false) => "off",
            (false, _) => "not loaded",
        };
        format!("{} ({state})", found.name)
    };
    Some(checked.interposers.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// The status of a library's conformance certificate. The library is hashed only if it has one.
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

/// Reports entries of the environment that do not exist, and preferences that cannot be applied.
pub fn amiss(searched: &[Searched], screen: &mut Screen) {
    let preferences = Preferences::of_user().problem();
    let amiss = [
        relative_entries(searched),
        missing_entries(searched),
        preferences,
        probe::problem(),
        judged::problem(),
    ];
    for line in amiss.into_iter().flatten() {
        screen.line(format!("\n{line}"));
    }
}

/// Lists the search paths with the libraries found in each.
pub fn paths(searched: &[Searched], screen: &mut Screen) {
    let mut table = screen::table(&["ORIGIN", "FOUND"], &[]);
    for entry in searched {
        table.add_row([entry.origin.to_string(), found(entry)]);
    }
    let paths: Vec<String> = searched.iter().map(|entry| entry.path.display().to_string()).collect();
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
