//! The repository's path, and commands that run in it.

use crate::failure::{Failure, Result};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The repository.
#[derive(Clone)]
pub struct Workspace {
    /// The folder that holds the workspace's Cargo.toml.
    pub root: PathBuf,
}

impl Workspace {
    /// Finds the repository: the folder above this crate's if cargo runs the task, otherwise the nearest folder above the
    /// working directory that contains a Cargo.toml with a `[workspace]`.
    pub fn find() -> Result<Self> {
        if let Some(root) =
            std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).as_deref().and_then(Path::parent)
        {
            return Ok(Self { root: root.to_path_buf() });
        }
        let here = std::env::current_dir().map_err(Failure::file("find", Path::new(".")))?;
        let is_root = |folder: &&Path| {
            std::fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(|text| text.contains("[workspace]"))
        };
        match here.ancestors().find(is_root) {
            Some(root) => Ok(Self { root: root.to_path_buf() }),
            None => Err(Failure::File {
                action: "find a workspace's Cargo.toml in or above",
                path: here,
                source: std::io::ErrorKind::NotFound.into(),
            }),
        }
    }

    /// A path inside the repository.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// The target folder.
    pub fn target(&self) -> PathBuf {
        match std::env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => self.root.join(folder),
            None => self.path("target"),
        }
    }

    /// A command that runs in the repository's root.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }

    /// The cargo that runs this task.
    pub fn cargo(&self) -> Command {
        self.command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
    }
}

/// A command line as a person would type it.
pub fn line(command: &Command) -> String {
    let program =
        Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut words = vec![program];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}

/// Runs a command whose output goes to the terminal; any status other than success is a failure.
pub fn run(command: &mut Command, advice: &'static str) -> Result<()> {
    let status = command.status().map_err(|source| not_started(command, source))?;
    if status.success() { Ok(()) } else { Err(Failure::Ended { command: line(command), status, advice }) }
}

/// Runs a command and returns its output; its error output goes to the terminal.
pub fn capture(command: &mut Command, advice: &'static str) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output().map_err(|source| not_started(command, source))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(Failure::Ended { command: line(command), status: output.status, advice })
    }
}

/// The variable with the path of a file for the reason of a skipped task, from which a runner of many tasks can repeat it.
const SKIPPED: &str = "KEYWAY_SKIPPED";

/// Reports that a task was skipped, and why: on the terminal, and in the file that `.ci/run` names.
pub fn skipped(task: &str, reason: &str) -> Result<()> {
    println!("{task}: skipped: {reason}");
    match std::env::var_os(SKIPPED).map(PathBuf::from) {
        Some(path) => write_reason(&path, reason),
        None => Ok(()),
    }
}

fn write_reason(path: &Path, reason: &str) -> Result<()> {
    // One line, whatever the program's output was.
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    std::fs::write(path, format!("{reason}\n")).map_err(Failure::file("write", path))
}

/// The failure of a command that could not be started.
pub fn not_started(command: &Command, source: std::io::Error) -> Failure {
    let program = command.get_program().to_string_lossy().into_owned();
    Failure::Start { program, source, advice: "check that it is installed and may be executed" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_reads_as_typed() {
        let mut command = Command::new("/usr/bin/cargo");
        command.args(["build", "--release"]);
        assert_eq!(line(&command), "cargo build --release");
    }

    #[test]
    fn the_reason_of_what_is_skipped_is_one_line_of_a_file() {
        let path = std::env::temp_dir().join(format!("keyway-skipped-{}", std::process::id()));
        write_reason(&path, "no compiler\n  was found").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "no compiler was found\n");
        std::fs::remove_file(&path).unwrap();
        assert!(write_reason(Path::new("/no/such/folder/file"), "x").is_err());
    }

    #[test]
    fn a_program_that_fails_is_a_failure() {
        let mut command = Command::new("rustc");
        command.arg("--no-such-option").stderr(Stdio::null());
        assert!(matches!(run(&mut command, "nothing"), Err(Failure::Ended { .. })));
        let mut command = Command::new("keyway-no-such-program");
        assert!(matches!(run(&mut command, "nothing"), Err(Failure::Start { .. })));
    }
}
