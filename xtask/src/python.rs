//! The Python package: its tests, which `cargo xtask test` runs, `cargo xtask wheel` and `cargo xtask array-api`.
//!
//! All need CPython 3.11 or later with `venv`, and an index from which pip fetches NumPy, pytest and mypy, or maturin. Where one is
//! missing, the tests are skipped with a line that says which; everything else needs no Python.

use crate::dist;
use crate::failure::{Failure, Result};
use crate::workspace::{self, Workspace};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of the package and of its extension module.
const PACKAGE: &str = "python";
/// The least version, which the stable ABI of the extension module needs as well.
const PYTHON: &str = "import sys, venv; sys.exit(sys.version_info < (3, 11))";
/// The tests of the public suite that fail, and why, in the suite's format.
const KNOWN: &str = "python/array_api_xfails.txt";
/// The variable by which PyO3's build script knows that it builds an extension module, which does not link to Python.
const EXTENSION: (&str, &str) = ("PYO3_BUILD_EXTENSION_MODULE", "1");

/// The module of a package.
fn module(package: &str) -> &str {
    match package {
        "pytest-json-report" => "pytest_jsonreport",
        same => same,
    }
}

/// Creates a virtual environment in the target folder, once, and installs packages; returns its Python, or why there is none.
fn environment(workspace: &Workspace, name: &str, packages: &[&str]) -> std::result::Result<PathBuf, String> {
    let quiet = |command: &mut Command| {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    };
    let folder = workspace.target().join("python").join(name);
    let python = folder.join("bin/python");
    if !quiet(Command::new(&python).args(["-c", PYTHON])) {
        if !quiet(Command::new("python3").args(["-c", PYTHON])) {
            return Err("there is no `python3` of CPython 3.11 or later with `venv`".to_string());
        }
        if !quiet(Command::new("python3").args(["-m", "venv"]).arg(&folder)) {
            return Err("`python3 -m venv` failed; Debian has it in the package `python3-venv`".to_string());
        }
    }
    let imports: Vec<String> = packages.iter().map(|name| format!("import {}", module(name))).collect();
    if quiet(Command::new(&python).args(["-c", &imports.join("; ")])) {
        return Ok(python);
    }
    let mut install = Command::new(&python);
    install
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--retries",
            "1",
            "--timeout",
            "20",
        ])
        .args(packages);
    if quiet(&mut install) {
        return Ok(python);
    }
    Err(format!("pip could not install {}; is there an index?", packages.join(" and ")))
}

/// Copies the Python files of the package to a folder, and the extension module beside them.
fn stage(workspace: &Workspace, extension: &Path) -> Result<PathBuf> {
    let site = workspace.target().join("python/site");
    let package = site.join("keyway");
    let _ = fs::remove_dir_all(&package);
    copy_sources(&workspace.path(PACKAGE).join("keyway"), &package)?;
    let to = package.join("_keyway.abi3.so");
    fs::copy(extension, &to).map_err(Failure::file("copy", extension))?;
    Ok(site)
}

/// Copies a folder's files and folders, without what Python compiled.
fn copy_sources(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).map_err(Failure::file("make", to))?;
    for entry in fs::read_dir(from).map_err(Failure::file("read", from))? {
        let path = entry.map_err(Failure::file("read", from))?.path();
        let Some(name) = path.file_name() else { continue };
        if path.is_dir() {
            if name != "__pycache__" {
                copy_sources(&path, &to.join(name))?;
            }
        } else {
            fs::copy(&path, to.join(name)).map_err(Failure::file("copy", &path))?;
        }
    }
    Ok(())
}

/// The commands of the package's tests: the build of the extension module, and pytest, which writes a JUnit report.
pub struct Tests {
    python: PathBuf,
    /// The report of pytest.
    pub report: PathBuf,
}

impl Tests {
    /// Prepares the environment; the reason where that is not possible.
    pub fn prepare(workspace: &Workspace) -> std::result::Result<Tests, String> {
        let python = environment(workspace, "tests", &["numpy", "pytest", "mypy"])?;
        Ok(Tests { python, report: workspace.target().join("python/junit.xml") })
    }

    /// The build of the extension module, with the arguments of `profile`.
    pub fn build(&self, workspace: &Workspace, profile: &[&str]) -> Command {
        let mut command = workspace.cargo();
        command
            .arg("build")
            .args(profile)
            .arg("--manifest-path")
            .arg(workspace.path(PACKAGE).join("Cargo.toml"));
        command.arg("--target-dir").arg(workspace.target()).env(EXTENSION.0, EXTENSION.1);
        // The stable ABI is the same for every Python.
        command.env("PYO3_NO_PYTHON", "1");
        command
    }

    /// pytest over the built package, with the backends of a folder.
    ///
    /// # Errors
    /// Files that cannot be copied, such as an extension module that was not built.
    pub fn run(&self, workspace: &Workspace, backends: &Path) -> Result<Command> {
        let site = stage(workspace, &workspace.target().join("debug/lib_keyway.so"))?;
        let mut command = workspace.command(&self.python);
        command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg("--junitxml").arg(&self.report);
        command
            .arg(workspace.path(PACKAGE).join("tests"))
            .env("PYTHONPATH", site)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("KEYWAY_BACKEND_PATH", backends);
        Ok(command)
    }
}

/// The options of `cargo xtask array-api`.
#[derive(clap::Args, Debug)]
pub struct ArrayApi {
    /// A checkout of `data-apis/array-api-tests` with its submodule.
    pub suite: PathBuf,
    /// Arguments for pytest, such as `--max-examples 100`; `--max-examples 20` without any.
    #[arg(last = true)]
    pub arguments: Vec<String>,
}

/// Runs the public suite of the array API standard on `keyway.array_api`, with the backends of `KEYWAY_BACKEND_PATH`, or else those
/// that it stages for this machine.
pub fn array_api(workspace: &Workspace, options: &ArrayApi) -> Result<()> {
    let needed = |reason| Failure::Output {
        command: "cargo xtask array-api".to_string(),
        expected: "a Python with the packages of the suite",
        got: reason,
    };
    let packages = ["numpy", "pytest", "hypothesis", "ndindex", "pytest-json-report"];
    let python = environment(workspace, "array-api", &packages).map_err(needed)?;
    let tests = Tests { python, report: workspace.target().join("python/array-api.xml") };
    let advice = "the lines above name the error";
    workspace::run(&mut tests.build(workspace, &[]), advice)?;
    let backends = match std::env::var_os("KEYWAY_BACKEND_PATH") {
        Some(path) => PathBuf::from(path),
        None => {
            dist::build_and_stage(workspace, &dist::Options { native: true, ..dist::Options::default() })?;
            workspace.path("dist/backends")
        }
    };
    let site = stage(workspace, &workspace.target().join("debug/lib_keyway.so"))?;
    let mut command = workspace.command(&tests.python);
    command.current_dir(&options.suite).env("PYTHONPATH", site).env("KEYWAY_BACKEND_PATH", backends);
    command.env("ARRAY_API_TESTS_MODULE", "keyway.array_api").args([
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "array_api_tests",
        "-rxXfE",
    ]);
    command.arg("--junitxml").arg(&tests.report).arg("--xfails-file").arg(workspace.path(KNOWN));
    if options.arguments.is_empty() {
        command.args(["--max-examples", "20"]);
    }
    workspace::run(command.args(&options.arguments), advice)
}

/// Builds the wheels in `dist/wheels`: the package with the CPU backend, and one of each other staged backend.
pub fn wheel(workspace: &Workspace) -> Result<()> {
    let python = environment(workspace, "wheel", &["maturin"]).map_err(|reason| Failure::Output {
        command: "cargo xtask wheel".to_string(),
        expected: "a Python with maturin",
        got: reason,
    })?;
    dist::build_and_stage(workspace, &dist::Options::default())?;
    let mut command = workspace.command(python);
    command.arg(workspace.path(PACKAGE).join("wheels.py")).env(EXTENSION.0, EXTENSION.1);
    workspace::run(&mut command, "the lines above name the wheel")
}
