//! Starts the runtime with the installed backends, and reports missing ones.

use crate::failure::Failure;
use crate::screen;
use keyway::Device;
use keyway::dispatcher::loader::{
    Candidate, Config, Discovery, KernelRecord, LoadError, Loader, SameAs, SearchOrigin, Searched, Verdict,
};
use keyway::dispatcher::registry::{self, PreferenceEntry};
use keyway::runtime::{self, Backends};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The backends that a run uses.
#[derive(clap::Args, Default)]
pub struct Choice {
    /// Look for backends in this folder, or use this library, before the usual paths; may be repeated.
    #[arg(long, global = true, value_name = "DIR")]
    pub backends: Vec<PathBuf>,
    /// Prefer this backend where several serve the same; may be repeated, the first is preferred most.
    #[arg(long = "backend", global = true, value_name = "NAME")]
    pub preferred: Vec<String>,
    /// The fallback for a call that no kernel serves on its device: error, or any device that a backend brings, such as cpu,
    /// which runs it; with a warning (cpu, cpu:warn) or without (cpu:allow).
    #[arg(long, global = true, value_name = "POLICY")]
    pub fallback: Option<String>,
    /// The fallback for a call on a composite tensor, such as a sparse one, that no kernel serves in its layout: error, warn (it
    /// runs on strided copies, with a warning), or allow (without).
    #[arg(long, global = true, value_name = "POLICY")]
    pub layout_fallback: Option<String>,
}

/// Searches for backends without opening any of them.
pub fn discover(choice: &Choice) -> Discovery {
    Loader::new(Config::of_process(choice.backends.clone())).discover()
}

/// The backends with the details that only loading shows, if each library in use is known good or passes a trial in its own
/// process. Otherwise the details from the files, and the reason why no backend was loaded.
///
/// # Errors
/// Two definitions of one op.
pub fn tried(choice: &Choice) -> Result<(Discovery, Option<String>), Failure> {
    let loader = Loader::new(Config::of_process(choice.backends.clone()));
    let discovery = loader.discover();
    if let Some(why) = loader.cannot_vouch(&discovery) {
        return Ok((discovery, Some(why)));
    }
    runtime::start_with(&choice.backends)?;
    Ok((runtime::backends().map_or(discovery, |backends| backends.discovery.clone()), None))
}

/// Whether a rejection is harmless: the same content is used under another name. Another build of the same version is not
/// harmless: there is no rule to choose between the two.
pub fn is_harmless(error: &LoadError) -> bool {
    matches!(error, LoadError::Duplicate { same, .. } if *same != SameAs::Plugin)
}

/// Fails if a discovered library cannot be used. A second copy of the same content is no failure.
///
/// # Errors
/// The number of libraries that cannot be used.
pub fn check(discovery: &Discovery) -> Result<(), Failure> {
    let unusable = |c: &&Candidate| matches!(&c.verdict, Verdict::Rejected(e) if !is_harmless(e));
    match discovery.candidates.iter().filter(unusable).count() {
        0 => Ok(()),
        count => Err(Failure::Rejected { count }),
    }
}

/// The kernels of a library whose registered signature differs from the op's signature in this build, as text; read from
/// the library's records, without opening it.
pub fn left_out(candidate: &Candidate) -> Vec<String> {
    let Some(checked) = &candidate.checked else { return Vec::new() };
    if runtime::register_ops().is_err() {
        return Vec::new();
    }
    let differs = |record: &KernelRecord| {
        let op = registry::find_op(&record.op)?;
        (op.schema.signature != record.signature)
            .then(|| format!("{} ({}, here {})", record.op, record.signature, op.schema.signature))
    };
    let mut found: Vec<String> = checked.kernels.iter().filter_map(differs).collect();
    found.dedup();
    found
}

/// Whether a library in use registers kernels, and no call can reach any of them.
pub fn serves_nothing(candidate: &Candidate) -> bool {
    if runtime::backends().is_none() || !matches!(candidate.verdict, Verdict::Chosen) {
        return false;
    }
    let registered = registry::kernels().iter().filter(|kernel| kernel.plugin.path == candidate.path).count();
    let left_out = registry::left_out();
    let left_out = left_out.iter().filter(|left| left.kernel.plugin.path == candidate.path).count();
    left_out > 0 && left_out >= registered
}

/// The registrations of a library in use that no call can select, one clause each; empty before the backends are loaded,
/// because another library may provide the missing names.
pub fn unreached(candidate: &Candidate) -> Vec<String> {
    if runtime::backends().is_none() || !matches!(candidate.verdict, Verdict::Chosen) {
        return Vec::new();
    }
    let of_library = registry::unreached(|plugin| plugin.path == candidate.path);
    of_library.iter().flat_map(|(_, found)| found).map(ToString::to_string).collect()
}

/// The time of an op in a memory format or layout that a plugin declares.
#[derive(Serialize)]
pub struct Declared {
    /// The op.
    pub op: &'static str,
    /// The kind of device.
    pub device: &'static str,
    /// The memory format or layout.
    pub format: &'static str,
    /// The time relative to row-major order.
    pub cost: f64,
    /// The plugin.
    pub plugin: &'static str,
    /// Whether plans use it, rather than that of another plugin.
    pub used: bool,
}

/// The times that the plugins in use declare for ops in memory formats and layouts; those without effect, for unknown names,
/// are left out.
///
/// # Errors
/// The errors of loading the backends.
pub fn declared() -> Result<Vec<Declared>, Failure> {
    let used = keyway::plan::preferences()?;
    let of = |p: &'static PreferenceEntry| Declared {
        op: p.op,
        device: Device { kind: p.device, index: 0 }.name(),
        format: p.format.name(),
        cost: p.cost,
        plugin: p.plugin.name,
        used: used.iter().any(|used| {
            let format = (used.op, used.device, used.format);
            used.plugin == p.plugin.name
                && format == (p.op, Device { kind: p.device, index: 0 }.name(), p.format.name())
        }),
    };
    let mut all: Vec<Declared> = registry::preferences().into_iter().map(of).collect();
    // Of a key without a used declaration none has an effect.
    let keys: Vec<_> = all.iter().filter(|d| d.used).map(|d| (d.op, d.device, d.format)).collect();
    all.retain(|declared| keys.contains(&(declared.op, declared.device, declared.format)));
    Ok(all)
}

/// Those of a library in use; empty before the backends are loaded.
pub fn declared_by(candidate: &Candidate) -> Vec<Declared> {
    let is_loaded = runtime::backends().is_some() && matches!(candidate.verdict, Verdict::Chosen);
    let Some(checked) = candidate.checked.as_ref().filter(|_| is_loaded) else { return Vec::new() };
    let mut all = declared().unwrap_or_default();
    all.retain(|declared| declared.plugin == checked.manifest.name);
    all
}

/// Loads the backends, and reports libraries that cannot be used on standard error.
///
/// # Errors
/// Two definitions of one op; a preferred backend that does not exist, an invalid fallback.
pub fn start(choice: &Choice) -> Result<&'static Backends, Failure> {
    let backends = start_quietly(choice)?;
    for rejected in &backends.rejected {
        screen::warning(rejected);
    }
    Ok(backends)
}

/// As [`start`], without the report.
///
/// # Errors
/// As [`start`].
pub fn start_quietly(choice: &Choice) -> Result<&'static Backends, Failure> {
    runtime::start_with(&choice.backends)?;
    let preferred: Vec<&str> = choice.preferred.iter().map(String::as_str).collect();
    keyway::backend::prefer_backends(&preferred).map_err(|error| Failure::Usage(error.to_string()))?;
    if let Some(policy) = &choice.fallback {
        keyway::set_fallback(policy).map_err(|error| Failure::Usage(error.to_string()))?;
        if let Some(trouble) = registry::FallbackPolicy::parse(policy)?.trouble() {
            screen::warning(&format!("--fallback {policy}: {trouble}"));
        }
    }
    if let Some(policy) = &choice.layout_fallback {
        keyway::set_layout_fallback(policy).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    runtime::backends().ok_or_else(|| Failure::NoBackend("the runtime did not start".to_string()))
}

/// The folder for a user's backends: the one next to the program if it exists, otherwise the one in the user's data folder.
fn folder(searched: &[Searched]) -> Option<&Path> {
    let of = |origin: SearchOrigin| searched.iter().filter(move |s| s.origin == origin);
    let existing = of(SearchOrigin::Program).find(|s| s.exists);
    existing
        .or_else(|| of(SearchOrigin::Program).next_back())
        .or_else(|| of(SearchOrigin::User).next())
        .map(|s| s.path.as_path())
}

/// The advice for a device without a backend, as one clause.
pub fn advice(device: &str, discovery: &Discovery) -> String {
    let library = crate::known::library(device);
    let into = folder(&discovery.searched)
        .map_or_else(|| "a folder of backends".to_string(), |folder| folder.display().to_string());
    format!(
        "put its library (such as {library}) into {into}, or install it with `keyway backend install FILE`, or name its \
         folder with `--backends` or KEYWAY_BACKEND_PATH"
    )
}
