//! `cargo xtask gpu`: stages the files with which a machine with a GPU runs all tests without building.
//!
//! ```text
//! dist/bin, dist/backends    as `cargo xtask dist` stages them
//! dist/gpu/run.sh            runs all of it, and keeps what each step wrote
//! dist/gpu/tests/            tests that compare the device with the CPU, and the libraries that they load
//! dist/gpu/device            the bench of a device, and `beside_pytorch.py`
//! ```

use crate::build;
use crate::dist;
use crate::failure::{Failure, Result};
use crate::workspace::{self, Workspace};
use std::fs;
use std::path::Path;

/// The tests with scenarios that do not depend on the stand-in's own settings; the script names these settings.
const TESTS: &[&str] =
    &["device", "index", "nets", "attention", "cores", "tf32", "blas", "dnn", "graph", "checks"];
/// The package of the tests, and the libraries that it loads from its own folder.
const PACKAGE: &str = "keyway-test-cuda-driver";
const LIBRARIES: &[&str] = &["keyway-backend-cpu", "keyway-backend-cuda"];
const BENCH: (&str, &str) = ("keyway-benches", "device");
const SCRIPT: &str = "xtask/src/gpu.sh";
const COMPARISON: &str = "benches/device/beside_pytorch.py";

/// Stages all files.
pub fn run(workspace: &Workspace) -> Result<()> {
    dist::run(workspace, &dist::Options::default())?;
    let folder = workspace.path("dist/gpu");
    let tests = folder.join("tests");
    fs::create_dir_all(&tests).map_err(Failure::file("make", &tests))?;
    let built = build::of_target(workspace, PACKAGE, "test", TESTS)?;
    for (name, path) in TESTS.iter().zip(&built) {
        stage(path, &tests.join(name))?;
    }
    let libraries = build::for_tests(workspace, LIBRARIES)?;
    for package in LIBRARIES {
        let path = libraries.library(package)?;
        stage(&path, &tests.join(path.file_name().unwrap_or_default()))?;
    }
    let bench = build::of_target(workspace, BENCH.0, "bench", &[BENCH.1])?;
    bench.iter().try_for_each(|path| stage(path, &folder.join(BENCH.1)))?;
    for file in [SCRIPT, COMPARISON] {
        let source = workspace.path(file);
        let name = source.file_name().unwrap_or_default().to_string_lossy().replace("gpu.sh", "run.sh");
        copy(&source, &folder.join(name))?;
    }
    println!("on a machine with a GPU: dist/gpu/run.sh [FOLDER FOR WHAT IT FINDS]");
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(drop).map_err(Failure::file("copy", from))
}

/// Copies a program or library without debug information, to make it smaller.
fn stage(from: &Path, to: &Path) -> Result<()> {
    copy(from, to)?;
    let mut strip = std::process::Command::new("strip");
    strip.arg(to);
    workspace::run(&mut strip, "`strip` is of the binutils, which come with the C linker")
}
