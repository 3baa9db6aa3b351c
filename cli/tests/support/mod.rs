//! Runs the built program, with its own folders.
#![allow(dead_code)]

pub mod corpus;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The output of a run of the program. In `out` and `err` wrapped lines are joined again.
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
    /// Standard output, then standard error, unchanged.
    pub shown: [String; 2],
}

/// The width to which all output is wrapped.
pub const COLUMNS: usize = 80;

/// The text before it was wrapped: a line continues in the next one if that is indented and its first word would not have
/// fitted.
fn unbroken(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    // Columns of the last line as it was printed.
    let mut shown = 0;
    for line in text.split('\n') {
        let rest = line.trim_start();
        let word = rest.split(' ').next().unwrap_or_default().chars().count();
        match lines.last_mut() {
            Some(last) if line.starts_with("    ") && word > 0 && shown + 1 + word > COLUMNS => {
                *last += " ";
                *last += rest;
            }
            _ => lines.push(line.to_string()),
        }
        shown = line.chars().count();
    }
    lines.join("\n")
}

impl Ran {
    /// The JSON on standard output.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}\n{}", self.out, self.err))
    }

    /// Fails unless the exit code is this one; a panic always fails.
    pub fn expect(self, code: i32) -> Ran {
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.err);
        assert!(!self.err.contains("panicked") && !self.err.contains("backtrace"), "{}", self.err);
        self
    }
}

/// The library of the CPU backend, which Cargo leaves beside this test.
pub fn library() -> PathBuf {
    library_of("keyway_backend_cpu")
}

/// The deliberate faults of a test plugin: its list of known failures, as arguments; empty without a list.
pub fn known_failures_of(library_name: &str) -> Vec<String> {
    let name = library_name.strip_prefix("keyway_test_").unwrap_or(library_name);
    let list = format!("{}/../test-plugins/{name}/known-failures.toml", env!("CARGO_MANIFEST_DIR"));
    if Path::new(&list).exists() { vec!["--known".to_string(), list] } else { Vec::new() }
}

/// The library of a plugin that is a dev-dependency.
pub fn library_of(name: &str) -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let file = format!("{}{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let path = folder.join(file);
    assert!(path.exists(), "{} is not built", path.display());
    path
}

/// A variable with the path of an optimised build of the program, which the tests run instead of their own build. The oracle
/// takes most of the time of the tests that judge.
const PROGRAM: &str = "KEYWAY_TESTED_PROGRAM";

/// The path of the program that the tests run.
pub fn executable() -> PathBuf {
    std::env::var_os(PROGRAM).map_or_else(|| env!("CARGO_BIN_EXE_keyway").into(), PathBuf::from)
}

/// The program with the backends of `path` alone.
pub fn program(path: &Path) -> Command {
    let mut command = Command::new(executable());
    let own = Path::new(env!("CARGO_TARGET_TMPDIR"));
    command
        .env("KEYWAY_BACKEND_PATH", path)
        .env("XDG_DATA_HOME", own.join("no-data"))
        .env("XDG_CONFIG_HOME", own.join("no-config"))
        .env("XDG_STATE_HOME", own.join("state"))
        .env_remove("KEYWAY_PROBE")
        .env_remove("RUST_BACKTRACE")
        .stdin(Stdio::null());
    command
}

/// Runs the program.
pub fn run(mut command: Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let shown = [text(stdout), text(stderr)];
    Ran { code: status.code(), out: unbroken(&shown[0]), err: unbroken(&shown[1]), shown }
}

/// Runs the program with the CPU backend.
pub fn keyway(arguments: &[&str]) -> Ran {
    let mut command = program(&library());
    command.args(arguments);
    run(command)
}

/// Runs the program with no backend installed.
pub fn bare(arguments: &[&str]) -> Ran {
    let empty = tempfile::tempdir().unwrap();
    let mut command = program(empty.path());
    command.args(arguments);
    run(command)
}
