//! `keyway doctor`: the search paths, the libraries found there, and their faults. Opens the libraries, so that errors of the
//! system's loader (a missing dependency, an undefined symbol) are found too.

use crate::failure::Failure;
use crate::installed::Choice;
use crate::screen::{self, Screen};
use crate::{backend, devices, installed};
use keyway::Device;
use keyway::dispatcher::loader::{Candidate, Config, CpuFeatures, Discovery, HOST_ABI, LoadError, Verdict};
use keyway::dispatcher::{device as api, parallel};
use serde::Serialize;
use std::path::PathBuf;

/// The options of `keyway doctor`.
#[derive(clap::Args)]
pub struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Host {
    version: &'static str,
    system: String,
    abi_min: u32,
    abi_max: u32,
    threads: usize,
    cpu_features: CpuFeatures,
    #[serde(serialize_with = "keyway::dispatcher::lossy::option")]
    quarantine: Option<PathBuf>,
}

#[derive(Serialize)]
struct Findings<'a> {
    host: Host,
    discovery: &'a Discovery,
    /// By library: CPU features that its code needs and this processor lacks.
    #[serde(serialize_with = "keyway::dispatcher::lossy::keyed")]
    missing_features: Vec<(PathBuf, Vec<String>)>,
    devices: Vec<devices::Found>,
    /// By kind of device: the system libraries that the backend found, and the features that work without them.
    device_facts: Vec<devices::DeviceFacts>,
    /// By library: kernels whose registered signature differs from the op's signature in this build.
    #[serde(serialize_with = "keyway::dispatcher::lossy::keyed")]
    left_out: Vec<(PathBuf, Vec<String>)>,
    /// By library: registrations that no call can select, one clause each.
    #[serde(serialize_with = "keyway::dispatcher::lossy::keyed")]
    without_effect: Vec<(PathBuf, Vec<String>)>,
    usable: usize,
    verdict: String,
}

/// Reports everything that decides which backends are used.
///
/// # Errors
/// Two definitions of one op; a library that cannot be used, after the report.
pub fn run(options: &Options, choice: &Choice, screen: &mut Screen) -> Result<(), Failure> {
    let config = Config::of_process(choice.backends.clone());
    let discovery = &installed::start_quietly(choice)?.discovery;
    let usable = discovery.chosen().count();
    let missing = |c: &Candidate| {
        c.checked.as_ref().map_or(Vec::new(), |l| config.cpu.missing(&l.manifest.cpu_features))
    };
    let devices = devices::all();
    let findings = Findings {
        missing_features: discovery
            .candidates
            .iter()
            .map(|c| (c.found_as.clone(), missing(c)))
            .filter(|(_, features)| !features.is_empty())
            .collect(),
        host: Host {
            version: env!("CARGO_PKG_VERSION"),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            abi_min: HOST_ABI.min,
            abi_max: HOST_ABI.max,
            threads: parallel::num_threads(),
            cpu_features: config.cpu.clone(),
            quarantine: config.quarantine.folder.clone(),
        },
        discovery,
        verdict: overall(discovery, usable, &devices),
        devices,
        device_facts: devices::facts_by_device(),
        left_out: by_library(discovery, installed::left_out),
        without_effect: by_library(discovery, installed::unreached),
        usable,
    };
    if options.json {
        screen.json(&findings);
    } else {
        print(&findings, screen);
    }
    installed::check(discovery)
}

/// The remarks on each library; libraries without remarks are omitted.
fn by_library(
    discovery: &Discovery,
    said: impl Fn(&Candidate) -> Vec<String>,
) -> Vec<(PathBuf, Vec<String>)> {
    let all = discovery.candidates.iter().map(|c| (c.found_as.clone(), said(c)));
    all.filter(|(_, said)| !said.is_empty()).collect()
}

fn overall(discovery: &Discovery, usable: usize, devices: &[devices::Found]) -> String {
    // One line for each kind of device.
    let idle = |found: &&devices::Found| found.trouble.is_some();
    let mut idle: Vec<&str> = devices.iter().filter(idle).map(|found| found.device.as_str()).collect();
    idle.dedup();
    let idle = match &idle[..] {
        [] => String::new(),
        idle => format!("; {} cannot be used, for the reasons above", idle.join(", ")),
    };
    let rejected = discovery.candidates.iter().filter(|c| matches!(c.verdict, Verdict::Rejected(_))).count();
    let serves_cpu = api::server(Device::CPU.kind).is_some();
    match (usable, rejected) {
        (0, 0) => format!("no backend is installed: {}", installed::advice("cpu", discovery)),
        (0, n) => format!("none of the libraries can be used ({n} rejected, for the reasons above)"),
        (n, _) if !serves_cpu => {
            format!("{n} usable, but none serves `cpu`: {}", installed::advice("cpu", discovery))
        }
        (n, 0) => format!("all is well: {n} usable{idle}"),
        (n, bad) => format!("{n} usable, {bad} rejected for the reasons above{idle}"),
    }
}

fn print(findings: &Findings<'_>, screen: &mut Screen) {
    let host = &findings.host;
    let features: Vec<&str> = host.cpu_features.names().collect();
    screen.line(format!("keyway {}, {}, {HOST_ABI}, {} threads", host.version, host.system, host.threads));
    screen.line(format!(
        "processor: {}",
        if features.is_empty() { "no known features".into() } else { features.join(" ") }
    ));
    if let Some(folder) = &host.quarantine {
        screen.line(format!("quarantine: {}", folder.display()));
    }
    screen.line("\nPaths searched, in order");
    backend::paths(&findings.discovery.searched, screen);
    backend::amiss(&findings.discovery.searched, screen);
    screen.line("\nLibraries");
    if findings.discovery.candidates.is_empty() {
        screen.line("none");
    }
    for candidate in &findings.discovery.candidates {
        let missing = findings.missing_features.iter().find(|(path, _)| *path == candidate.found_as);
        library(candidate, missing.map(|(_, features)| features.as_slice()).unwrap_or_default(), screen);
        for remark in findings.discovery.remarks(candidate) {
            screen.line(format!("  note       {remark}"));
        }
    }
    if !findings.devices.is_empty() {
        screen.line("\nDevices");
        let mut table = screen::table(&["DEVICE", "BACKEND", "NAME"], &[]);
        for found in &findings.devices {
            let name = found.trouble.as_ref().unwrap_or(&found.name);
            table.add_row([found.device.as_str(), found.served_by, name.as_str()]);
        }
        screen.table(&table);
    }
    for of_device in &findings.device_facts {
        screen.line(format!("\nOf {}, by {}", of_device.device, of_device.served_by));
        for fact in &of_device.facts {
            screen.line(format!("  {:<10} {}", fact.name, fact.text));
        }
    }
    screen.line(format!("\nVerdict: {}", findings.verdict));
}

fn library(candidate: &Candidate, missing: &[String], screen: &mut Screen) {
    screen.line(candidate.found_as.display());
    if candidate.path != candidate.found_as {
        screen.line(format!("  leads to   {}", candidate.path.display()));
    }
    if let Some(checked) = &candidate.checked {
        let m = &checked.manifest;
        let list = |items: &[String]| if items.is_empty() { "none".to_string() } else { items.join(", ") };
        screen
            .line(format!("  backend    {} {}, variant {}: {}", m.name, m.version, m.variant, m.description));
        screen.line(format!("  built for  {}, SDK {}", m.abi(), m.sdk));
        let (devices, layouts) = (list(&m.devices), list(&m.layouts));
        let kernels = checked.n_kernels();
        screen.line(format!("  serves     {kernels} kernels, devices {devices}, layouts {layouts}"));
        if let Some(found) = backend::interposers(candidate, true) {
            screen.line(format!("  interposes {found}"));
        }
        let features = match (m.cpu_features.len(), missing) {
            (n, []) => format!("{n} needed, all are there"),
            (n, missing) => format!("{n} needed, missing: {}", missing.join(", ")),
        };
        screen.line(format!("  processor  {features}"));
        let absent = match &candidate.verdict {
            Verdict::Rejected(LoadError::MissingDependency { library }) => format!("; missing: {library}"),
            _ => String::new(),
        };
        screen.line(format!("  needs      {}{absent}", list(&checked.needed)));
        if !m.needs.is_empty() {
            screen.line(format!("  install    {}", m.needs.join(", ")));
        }
    }
    let left_out = installed::left_out(candidate);
    if !left_out.is_empty() {
        screen
            .line(format!("  left out   kernels written against other signatures: {}", left_out.join(", ")));
    }
    let unreached = installed::unreached(candidate);
    if !unreached.is_empty() {
        screen.line(format!("  no effect  {}", unreached.join("; ")));
    }
    let state = backend::state(&candidate.verdict);
    screen.line(match candidate.reason() {
        None => format!("  verdict    {state}"),
        Some(reason) => format!("  verdict    {state}: {reason}"),
    });
}
