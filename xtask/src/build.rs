//! The builds, their CPU levels, and the paths of cargo's outputs.

use crate::failure::{Failure, Result};
use crate::workspace::{self, Workspace};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The package and the name of the program.
pub const PROGRAM: (&str, &str) = ("keyway-cli", "keyway");
/// The program of the same package that tries backends in its own process.
pub const PROBE: &str = "keyway-probe";

/// The builds of a backend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Builds {
    /// Built once, for the architecture's baseline: for a GPU's backend, whose host code takes little of the time, and for a
    /// library that selects its code at run time.
    Once,
    /// Built once for each level of [`LEVELS`] on x86-64, otherwise once.
    PerLevel {
        /// Features that only the level x86-64-v4 is built with.
        v4_features: &'static [&'static str],
    },
}

/// A backend that `dist` stages.
#[derive(Clone, Copy, Debug)]
pub struct Backend {
    /// The package's name.
    pub package: &'static str,
    /// The builds of the backend.
    pub builds: Builds,
}

impl Backend {
    /// The package's name without its prefix: `cpu`.
    pub fn name(&self) -> &'static str {
        self.package.trim_start_matches("keyway-backend-")
    }
}

/// Every backend of this repository. A new backend is one line here.
pub const BACKENDS: &[Backend] = &[
    Backend { package: "keyway-backend-cpu", builds: Builds::PerLevel { v4_features: &["x86-v4"] } },
    Backend { package: "keyway-backend-channels-last", builds: Builds::PerLevel { v4_features: &[] } },
    Backend { package: "keyway-backend-cuda", builds: Builds::Once },
    // `rustfft` and `faer` select their code for the CPU at run time.
    Backend { package: "keyway-backend-fft", builds: Builds::Once },
    Backend { package: "keyway-backend-linalg", builds: Builds::Once },
    Backend { package: "keyway-backend-sparse", builds: Builds::PerLevel { v4_features: &[] } },
];

/// Backends that are built as one codegen unit, at the highest optimisation level. Without link-time optimisation the
/// generic functions of the standard library that loops call are not inlined across codegen units: sparse matrix products
/// took five times as long. At level 2 a loop over the lanes of one vector is unrolled and not vectorised again: gradients
/// of such products took three times as long.
const UNSPLIT: &[&str] = &["keyway-backend-sparse"];

/// The levels of x86-64 that backends are built for, lowest first.
pub const LEVELS: &[&str] = &["x86-64-v2", "x86-64-v3", "x86-64-v4"];

/// One invocation of cargo that builds one library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    /// The package's name.
    pub package: &'static str,
    /// The level of x86-64; `None` for the architecture's baseline.
    pub level: Option<&'static str>,
    /// The features to switch on.
    pub features: &'static [&'static str],
}

impl Job {
    /// The folder of the package in this repository.
    pub fn folder(&self) -> &'static str {
        self.package.trim_start_matches("keyway-")
    }
}

/// The builds of all backends. `x86` is whether the levels of x86-64 apply; `only` selects one level.
pub fn jobs(backends: &[Backend], x86: bool, only: Option<Option<&'static str>>) -> Vec<Job> {
    let mut jobs = Vec::new();
    for backend in backends {
        match backend.builds {
            Builds::PerLevel { v4_features } if x86 => {
                let levels = match only {
                    Some(level) => vec![level],
                    None => LEVELS.iter().copied().map(Some).collect(),
                };
                for level in levels {
                    let features = if level == LEVELS.last().copied() { v4_features } else { &[] };
                    jobs.push(Job { package: backend.package, level, features });
                }
            }
            _ => jobs.push(Job { package: backend.package, level: None, features: &[] }),
        }
    }
    jobs
}

/// Whether the levels of x86-64 apply to the machine that this task was built for.
pub const X86: bool = cfg!(target_arch = "x86_64");

/// The highest level that this CPU supports; `None` below x86-64-v2 and on other architectures.
pub fn native_level() -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! all {
            ($($feature:tt)*) => { true $(&& std::arch::is_x86_feature_detected!($feature))* };
        }
        let v2 = all!("sse3" "ssse3" "sse4.1" "sse4.2" "popcnt" "cmpxchg16b");
        let v3 = v2 && all!("avx" "avx2" "bmi1" "bmi2" "f16c" "fma" "lzcnt" "movbe");
        let v4 = v3 && all!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl");
        let height = [v2, v3, v4].iter().filter(|&&supported| supported).count();
        height.checked_sub(1).map(|index| LEVELS[index])
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// A program's name, and its path.
pub type Program = (&'static str, PathBuf);

/// Builds the programs and the libraries, and returns the latter in the order of the jobs. The programs, the libraries for a CPU
/// level and the other libraries are built in parallel, in target folders of their own: the end of each build uses one core.
pub fn all(workspace: &Workspace, jobs: &[Job]) -> Result<([Program; 2], Vec<PathBuf>)> {
    let build = |wanted: fn(&Job) -> bool| -> Result<Vec<Option<PathBuf>>> {
        jobs.iter().map(|job| wanted(job).then(|| library(workspace, job)).transpose()).collect()
    };
    std::thread::scope(|scope| {
        let programs = scope.spawn(|| programs(workspace));
        let others = scope.spawn(|| build(|job| job.level.is_none()));
        let levels = build(|job| job.level.is_some());
        let programs = programs.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let others = others.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let libraries = levels?.into_iter().zip(others?).filter_map(|(level, other)| level.or(other));
        Ok((programs?, libraries.collect()))
    })
}

/// Builds the program and the probe, and returns the paths of the executables.
fn programs(workspace: &Workspace) -> Result<[Program; 2]> {
    let (package, name) = PROGRAM;
    let mut command = release(workspace, "build", package);
    let messages = messages(&mut command)?;
    let built = |name| {
        let none = Failure::NoArtefact { package: package.into(), kind: "executable" };
        Ok((name, executable(&messages, name).ok_or(none)?))
    };
    Ok([built(name)?, built(PROBE)?])
}

/// Builds one library and returns its path.
///
/// A level is built with `--target`, so that its instructions reach the library alone: build scripts and procedural macros run
/// on this machine, which may not have them. Each level has its own target folder, because cargo gives all builds of a `cdylib`
/// the same file name, and so have the libraries without one, because builds in one folder wait for each other.
fn library(workspace: &Workspace, job: &Job) -> Result<PathBuf> {
    let mut command = release(workspace, "rustc", job.package);
    let folder = workspace.target().join("levels").join(job.level.unwrap_or("none"));
    command.arg("--target-dir").arg(folder);
    if let Some(level) = job.level {
        command.arg("--target").arg(host(workspace)?);
        let own = std::env::var("RUSTFLAGS").unwrap_or_default();
        command.env("RUSTFLAGS", format!("{own} -C target-cpu={level}").trim_start());
        command.env_remove("CARGO_ENCODED_RUSTFLAGS");
    }
    if !job.features.is_empty() {
        command.arg("--features").arg(job.features.join(","));
    }
    command.args(own_flags(job));
    let messages = messages(&mut command)?;
    cdylib(&messages, job.package).ok_or(Failure::NoArtefact { package: job.package.into(), kind: "cdylib" })
}

/// The artefacts of one invocation of cargo.
pub struct Built(Vec<Value>);

impl Built {
    /// The program.
    pub fn program(&self) -> Result<PathBuf> {
        let (package, name) = PROGRAM;
        executable(&self.0, name).ok_or(Failure::NoArtefact { package: package.into(), kind: "executable" })
    }

    /// The library of a package.
    pub fn library(&self, package: &str) -> Result<PathBuf> {
        cdylib(&self.0, package).ok_or(Failure::NoArtefact { package: package.into(), kind: "cdylib" })
    }
}

/// Builds packages as the tests use them, in the dev profile.
pub fn for_tests(workspace: &Workspace, packages: &[&str]) -> Result<Built> {
    let mut command = workspace.cargo();
    command.args(["build", "--message-format=json-render-diagnostics"]);
    packages.iter().for_each(|package| {
        command.args(["--package", package]);
    });
    Ok(Built(messages(&mut command)?))
}

/// The executables of a package's tests, in the dev profile, or of its benches, in the release profile, sorted by name.
pub fn of_target(
    workspace: &Workspace,
    package: &str,
    kind: &'static str,
    names: &[&str],
) -> Result<Vec<PathBuf>> {
    let mut command = workspace.cargo();
    command.args(["build", "--message-format=json-render-diagnostics", "--package", package]);
    names.iter().for_each(|name| {
        command.arg(format!("--{kind}")).arg(name);
    });
    if kind == "bench" {
        command.arg("--release");
    }
    let messages = messages(&mut command)?;
    let program = |name: &&str| {
        artefacts(&messages)
            .filter(|message| message["target"]["name"] == **name && has_kind(message, kind))
            .filter_map(|message| message["executable"].as_str())
            .last()
            .map(PathBuf::from)
            .ok_or_else(|| Failure::NoArtefact {
                package: format!("{package}'s {kind} {name}"),
                kind: "executable",
            })
    };
    names.iter().map(program).collect()
}

/// Compiler flags for the library's own crate only. For x86-64-v4 the compiler would prefer 256-bit vectors, because early
/// CPUs reduce their clock for wider ones; with 512 bits the elementary functions take two thirds of the time on later
/// CPUs. The compiler warns that it passes an unknown feature on.
fn own_flags(job: &Job) -> &'static [&'static str] {
    if job.level.is_some() && job.level == LEVELS.last().copied() {
        &["--", "-C", "target-feature=-prefer-256-bit"]
    } else {
        &[]
    }
}

/// A release build of one package.
fn release(workspace: &Workspace, task: &str, package: &str) -> Command {
    let mut command = workspace.cargo();
    // The progress bars of two concurrent builds overwrite each other.
    command.env("CARGO_TERM_PROGRESS_WHEN", "never");
    command.args([task, "--release", "--message-format=json-render-diagnostics", "--package", package]);
    // A backend is one crate of many small loops, and the program spends its time in backends: cross-crate optimisation gains
    // nothing and takes a fifth of the build's time.
    command.args(["--config", "profile.release.lto=\"off\""]);
    if package == PROGRAM.0 || UNSPLIT.contains(&package) {
        // This makes the program a sixteenth smaller.
        command.args(["--config", "profile.release.codegen-units=1"]);
    }
    if package == PROGRAM.0 {
        // This makes the program an eighth smaller and its build an eighth shorter; a run of the suite takes a twentieth
        // longer. (At level `z` it would be a fifth smaller, and the run a quarter longer.)
        command.args(["--config", "profile.release.opt-level=\"s\""]);
    }
    if package != PROGRAM.0 && !UNSPLIT.contains(&package) {
        // Longer loops vectorise at level 2 as at 3, in half the build time and half the bytes.
        command.args(["--config", "profile.release.opt-level=2"]);
    }
    command
}

/// Runs cargo and returns its messages, one JSON value a line.
fn messages(command: &mut Command) -> Result<Vec<Value>> {
    eprintln!("$ {}", workspace::line(command));
    let text = workspace::capture(
        command.stdin(Stdio::null()),
        "the compiler's messages stand above; mend the code, then run the task again",
    )?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// The triple of the machine that compiles.
fn host(workspace: &Workspace) -> Result<String> {
    let mut command = workspace.command(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    command.arg("-vV");
    let text = workspace::capture(&mut command, "check the Rust toolchain")?;
    match text.lines().find_map(|line| line.strip_prefix("host: ")) {
        Some(triple) => Ok(triple.to_owned()),
        None => Err(Failure::Output {
            command: workspace::line(&command),
            expected: "a line `host: TRIPLE`",
            got: text.chars().take(200).collect(),
        }),
    }
}

/// The artefact messages, newest last.
fn artefacts(messages: &[Value]) -> impl Iterator<Item = &Value> {
    messages.iter().filter(|message| message["reason"] == "compiler-artifact")
}

fn executable(messages: &[Value], name: &str) -> Option<PathBuf> {
    artefacts(messages)
        .filter(|message| message["target"]["name"] == name && has_kind(message, "bin"))
        .filter_map(|message| message["executable"].as_str())
        .last()
        .map(PathBuf::from)
}

fn cdylib(messages: &[Value], package: &str) -> Option<PathBuf> {
    let target = package.replace('-', "_");
    artefacts(messages)
        .filter(|message| message["target"]["name"] == target.as_str() && has_kind(message, "cdylib"))
        .filter_map(|message| message["filenames"].as_array())
        .flatten()
        .filter_map(Value::as_str)
        .filter(|path| path.ends_with(std::env::consts::DLL_SUFFIX))
        .last()
        .map(PathBuf::from)
}

fn has_kind(message: &Value, kind: &str) -> bool {
    message["target"]["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|own| own == kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TWO: &[Backend] = &[
        Backend { package: "keyway-backend-a", builds: Builds::PerLevel { v4_features: &["wide"] } },
        Backend { package: "keyway-backend-b", builds: Builds::Once },
    ];

    #[test]
    fn every_level_is_built_and_only_the_last_is_wide() {
        let levels: Vec<_> =
            jobs(TWO, true, None).iter().map(|job| (job.level, job.features.len())).collect();
        let expected = [(Some(LEVELS[0]), 0), (Some(LEVELS[1]), 0), (Some(LEVELS[2]), 1), (None, 0)];
        assert_eq!(levels, expected);
    }

    #[test]
    fn only_the_last_level_asks_for_the_widest_vectors() {
        let asks = |level| !own_flags(&Job { package: "a", level, features: &[] }).is_empty();
        assert_eq!([None, Some(LEVELS[1]), Some(LEVELS[2])].map(asks), [false, false, true]);
    }

    #[test]
    fn native_keeps_one_level_and_other_architectures_have_none() {
        let native = jobs(TWO, true, Some(Some(LEVELS[1])));
        assert_eq!(native.iter().map(|job| job.level).collect::<Vec<_>>(), [Some(LEVELS[1]), None]);
        let old = jobs(TWO, true, Some(None));
        assert_eq!(old.iter().map(|job| job.level).collect::<Vec<_>>(), [None, None]);
        let other = jobs(TWO, false, None);
        assert_eq!(other.iter().map(|job| job.level).collect::<Vec<_>>(), [None, None]);
    }

    #[test]
    fn artefact_paths_come_from_the_messages() {
        let suffix = std::env::consts::DLL_SUFFIX;
        let library = format!("t/liba{suffix}");
        let messages = [
            json!({"reason": "build-script-executed"}),
            json!({"reason": "compiler-artifact", "executable": null, "filenames": ["t/a.d", library],
                   "target": {"name": "keyway_backend_a", "kind": ["cdylib"]}}),
            json!({"reason": "compiler-artifact", "executable": "t/keyway", "filenames": ["t/keyway"],
                   "target": {"name": "keyway", "kind": ["bin"]}}),
        ];
        assert_eq!(cdylib(&messages, "keyway-backend-a"), Some(PathBuf::from(&library)));
        assert_eq!(executable(&messages, "keyway"), Some(PathBuf::from("t/keyway")));
        assert_eq!(cdylib(&messages, "keyway"), None);
        assert_eq!(executable(&messages, "keyway_backend_a"), None);
    }
}
