//! `cargo xtask miri`: unit tests under Miri, which finds undefined behaviour.
//!
//! Miri belongs to the nightly toolchain. rustup installs missing components; where that is not possible, one line reports it,
//! and the task succeeds: the other checks must stay possible on a machine without a network.

use crate::failure::{Failure, Result};
use crate::test::{self, Tally};
use crate::workspace::{self, Workspace};
use std::process::{Command, Stdio};

/// The toolchain that has Miri.
const TOOLCHAIN: &str = "nightly";
/// The required components, by rustup's names.
const COMPONENTS: &[&str] = &["miri", "rust-src"];

/// The ABI passes addresses as integers, which Miri would warn about; and system calls for folders fail, so that each run
/// is the same.
const FLAGS: &str = "-Zmiri-permissive-provenance -Zmiri-isolation-error=hide";

/// The unit tests to run: for a package, the tests whose names contain one of these words. Miri is a thousand times slower than
/// native code, so only code with pointers is listed, and no test that covers many sizes.
const TESTS: &[(&str, &[&str])] = &[
    ("keyway-dispatcher", &["memory::", "tensor::access::", "tensor::geometry::"]),
    (
        "keyway-sdk",
        &[
            "author::call_tests::",
            "author::element::",
            "author::float::",
            "author::strided::tests::any_numbers",
            "author::strided::tests::dense",
        ],
    ),
    (
        "keyway-cpu-loops",
        &[
            "contiguous::",
            "pack::",
            "transpose::",
            "::an_input_of_one",
            "::an_input_that_partly",
            "::any_strides",
        ],
    ),
];

/// Runs the tests of each line, all lines in parallel: Miri uses one core.
pub fn run(workspace: &Workspace) -> Result<()> {
    if let Err(reason) = prepare(workspace) {
        return workspace::skipped("miri", &reason);
    }
    let mut sum = Tally::default();
    for tally in std::thread::scope(|scope| {
        let each =
            |(package, names): &'static (&str, &[&str])| scope.spawn(|| tests(workspace, package, names));
        let running: Vec<_> = TESTS.iter().map(each).collect();
        let ended = running.into_iter().map(|thread| thread.join());
        ended.map(|tally| tally.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect::<Vec<_>>()
    }) {
        sum.add(tally?);
    }
    match sum {
        Tally { failed: 0, broken: 0, passed, .. } => {
            println!("miri: {passed} tests, no undefined behaviour");
            Ok(())
        }
        Tally { failed, broken, .. } => Err(Failure::Tests { failed, broken }),
    }
}

/// Runs some tests of a package; each word must match at least one test.
fn tests(workspace: &Workspace, package: &str, names: &[&str]) -> Result<Tally> {
    let mut command = toolchain(workspace);
    command.args(["cargo", "miri", "test", "--package", package, "--lib", "--target-dir"]);
    command.arg(workspace.target().join("miri")).arg("--").args(names);
    println!("\n== {package}: {}", workspace::line(&command));
    let tally = test::follow(&mut command)?;
    if tally.all_failed() == 0 && tally.passed < names.len() as u64 {
        return Err(Failure::NoTests { command: workspace::line(&command), file: "miri.rs" });
    }
    Ok(tally)
}

/// A command of the nightly toolchain.
fn toolchain(workspace: &Workspace) -> Command {
    let mut command = workspace.command("rustup");
    command.args(["run", TOOLCHAIN]).env("MIRIFLAGS", FLAGS);
    command
}

/// Installs the missing components; returns why that is not possible.
fn prepare(workspace: &Workspace) -> std::result::Result<(), String> {
    if is_there(workspace) {
        return Ok(());
    }
    let mut install = workspace.command("rustup");
    install.args(["toolchain", "install", TOOLCHAIN, "--profile", "minimal", "--no-self-update"]);
    for component in COMPONENTS {
        install.args(["--component", component]);
    }
    let output = install
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("there is no rustup to install a {TOOLCHAIN} toolchain with ({error})"))?;
    if output.status.success() && is_there(workspace) {
        return Ok(());
    }
    let line = workspace::line(&install);
    Err(format!(
        "`{line}` ended with {}: {}",
        output.status,
        reason(&String::from_utf8_lossy(&output.stderr))
    ))
}

/// Whether the toolchain has all components.
fn is_there(workspace: &Workspace) -> bool {
    let mut list = workspace.command("rustup");
    list.args(["component", "list", "--installed", "--toolchain", TOOLCHAIN]).stdin(Stdio::null());
    list.output()
        .is_ok_and(|output| output.status.success() && has_all(&String::from_utf8_lossy(&output.stdout)))
}

/// Whether a list of components, one on each line and possibly with the target's name as suffix, contains all required
/// ones.
fn has_all(list: &str) -> bool {
    let has = |component: &&str| {
        list.lines().any(|line| {
            line.strip_prefix(*component).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
    };
    COMPONENTS.iter().all(has)
}

/// The line of an error output with the cause.
fn reason(errors: &str) -> &str {
    let lines = || errors.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines().find_map(|line| line.strip_prefix("error:"));
    first.or_else(|| lines().next_back()).unwrap_or("it said nothing").trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_components_are_needed() {
        assert!(has_all("cargo-x86_64-unknown-linux-gnu\nmiri-x86_64-unknown-linux-gnu\nrust-src\n"));
        assert!(!has_all("cargo-x86_64-unknown-linux-gnu\nrust-src\n"));
        assert!(!has_all("miri-x86_64-unknown-linux-gnu\nrust-srcs\n"));
        assert!(!has_all(""));
    }

    #[test]
    fn the_reason_is_one_line() {
        let errors = "info: syncing\nerror: could not download file\n\nCaused by:\n  no route\n";
        assert_eq!(reason(errors), "could not download file");
        assert_eq!(reason("a\n  b \n"), "b");
        assert_eq!(reason(""), "it said nothing");
    }
}
