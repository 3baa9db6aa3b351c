//! The error of a task.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// The result of a step of a task.
pub type Result<T> = std::result::Result<T, Failure>;

/// The error of a task. The message ends with what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// A file could not be read, written, copied or renamed.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// The attempted operation, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A definition of the contract that C cannot express.
    #[error("cannot say in C what {file} holds: {what}; use a type that xtask/src/header/declare.rs knows", file = file.display())]
    NoC {
        /// The path of the source.
        file: PathBuf,
        /// The definition.
        what: String,
    },
    /// A program could not be started.
    #[error("cannot start `{program}`: {source}; {advice}")]
    Start {
        /// The program's name or path.
        program: String,
        /// The system's error.
        source: std::io::Error,
        /// The advice.
        advice: &'static str,
    },
    /// A program failed.
    #[error("`{command}` ended with {status}; {advice}")]
    Ended {
        /// The command line.
        command: String,
        /// The exit status of the program.
        status: ExitStatus,
        /// The advice.
        advice: &'static str,
    },
    /// The build succeeded but did not report the requested file.
    #[error(
        "the build of {package} announced no {kind}; check `[lib] crate-type` and `[[bin]]` in its Cargo.toml"
    )]
    NoArtefact {
        /// The package that was built.
        package: String,
        /// The requested kind of target.
        kind: &'static str,
    },
    /// A program's output cannot be parsed.
    #[error("cannot read what `{command}` printed: expected {expected}, got {got:?}")]
    Output {
        /// The command line.
        command: String,
        /// The expected output.
        expected: &'static str,
        /// The beginning of the output.
        got: String,
    },
    /// A test filter that selects none: its tests were moved or renamed.
    #[error("`{command}` ran fewer tests than it names; mend the names in xtask/src/{file}")]
    NoTests {
        /// The command line.
        command: String,
        /// The file with the filters.
        file: &'static str,
    },
    /// The report of a test runner cannot be read.
    #[error("cannot read the report {path}: {fault}; run `cargo xtask test --plain`, which needs none", path = path.display())]
    Report {
        /// The file.
        path: PathBuf,
        /// The fault.
        fault: String,
    },
    /// Tests failed.
    #[error("{failed} tests failed and {broken} test programs did not finish; the lines above name them")]
    Tests {
        /// Failed tests.
        failed: u64,
        /// The number of test programs or builds that ended without a count.
        broken: u64,
    },
    /// Cases failed without a fault, so that the runs with a fault prove nothing.
    #[error("the control run is not green: {bad} of {of} cases are not as expected, among them {first}")]
    Control {
        /// The number of cases with unexpected results.
        bad: usize,
        /// The total number of cases.
        of: usize,
        /// The first of them.
        first: String,
    },
    /// An unknown fault.
    #[error("there is no fault `{name}`; there are: {there}")]
    NoFault {
        /// The requested name.
        name: String,
        /// The existing names.
        there: String,
    },
    /// Faults that the suite did not find.
    #[error("{escaped} of {of} faults were not found: {names}; mend conformance/src/families")]
    Escaped {
        /// The number of faults that no case detected.
        escaped: usize,
        /// The total number of faults.
        of: usize,
        /// The names of the undetected faults.
        names: String,
    },
    /// Images of kernels that differ from the expected ones.
    #[error("the images of the kernels: {what}; run `cargo xtask cuda images`")]
    Images {
        /// The differences.
        what: String,
    },
    /// The stand-in for a device's driver was not built.
    #[error("{reason}")]
    StandIn {
        /// The reason.
        reason: String,
    },
    /// A file of measured results with a fault.
    #[error("cannot use {path}: {fault}; xtask/src/results/data.rs lists the fields", path = path.display())]
    Results {
        /// The file.
        path: PathBuf,
        /// The fault.
        fault: String,
    },
    /// The tree breaks rules.
    #[error("{count} violations; each line above ends with how to mend it")]
    Untidy {
        /// Number of violations.
        count: usize,
    },
}

impl Failure {
    /// A closure for `map_err` that records the attempted operation and the file.
    pub fn file(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
        let path = path.to_path_buf();
        move |source| Failure::File { action, path, source }
    }
}
