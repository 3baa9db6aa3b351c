//! Why a task stopped.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// The result of a step of a task.
pub type Result<T> = std::result::Result<T, Failure>;

/// Why a task stopped. The message says what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// A file could not be read, written, copied or renamed.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A definition of the contract that has no form in C.
    #[error("cannot say in C what {file} holds: {what}; use a type that xtask/src/header/declare.rs knows", file = file.display())]
    NoC {
        /// The source.
        file: PathBuf,
        /// What stands there.
        what: String,
    },
    /// A program could not be started.
    #[error("cannot start `{program}`: {source}; {advice}")]
    Start {
        /// The program's name or path.
        program: String,
        /// The system's answer.
        source: std::io::Error,
        /// What to do.
        advice: &'static str,
    },
    /// A program ended with something other than success.
    #[error("`{command}` ended with {status}; {advice}")]
    Ended {
        /// The command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What to do.
        advice: &'static str,
    },
    /// The build succeeded but did not announce the file that was asked for.
    #[error(
        "the build of {package} announced no {kind}; check `[lib] crate-type` and `[[bin]]` in its Cargo.toml"
    )]
    NoArtefact {
        /// The package that was built.
        package: String,
        /// The kind of target that was looked for.
        kind: &'static str,
    },
    /// A program printed something that this task cannot read.
    #[error("cannot read what `{command}` printed: expected {expected}, got {got:?}")]
    Output {
        /// The command line.
        command: String,
        /// What should stand there.
        expected: &'static str,
        /// The beginning of what stands there.
        got: String,
    },
    /// A filter of tests that selects none: what it named was moved or renamed.
    #[error("`{command}` ran fewer tests than it names; mend the names in xtask/src/{file}")]
    NoTests {
        /// The command line.
        command: String,
        /// Where its filters stand.
        file: &'static str,
    },
    /// The report of a test runner cannot be read.
    #[error("cannot read the report {path}: {fault}; run `cargo xtask test --plain`, which needs none", path = path.display())]
    Report {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: String,
    },
    /// Tests failed.
    #[error("{failed} tests failed and {broken} test programs did not finish; the lines above name them")]
    Tests {
        /// Failed tests.
        failed: u64,
        /// Test programs or builds that ended without a count.
        broken: u64,
    },
    /// The kernels without a fault were not passed, so that nothing can be said about those with one.
    #[error("the control run is not green: {bad} of {of} cases are not as expected, among them {first}")]
    Control {
        /// Cases that are not as expected.
        bad: usize,
        /// How many there were.
        of: usize,
        /// The first of them.
        first: String,
    },
    /// There is no fault of that name.
    #[error("there is no fault `{name}`; there are: {there}")]
    NoFault {
        /// What was asked for.
        name: String,
        /// What there is.
        there: String,
    },
    /// Faults that the suite did not find.
    #[error("{escaped} of {of} faults were not found: {names}; mend conformance/src/families")]
    Escaped {
        /// How many.
        escaped: usize,
        /// Of how many.
        of: usize,
        /// Their names.
        names: String,
    },
    /// Images of kernels that are not what they should be.
    #[error("the images of the kernels: {what}; run `cargo xtask cuda images`")]
    Images {
        /// What is wrong.
        what: String,
    },
    /// The stand-in for a device's driver was not built.
    #[error("{reason}")]
    StandIn {
        /// Why.
        reason: String,
    },
    /// The tree breaks rules.
    #[error("{count} violations; each line above ends with how to mend it")]
    Untidy {
        /// How many.
        count: usize,
    },
}

impl Failure {
    /// A closure for `map_err` that records what was tried on which file.
    pub fn file(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
        let path = path.to_path_buf();
        move |source| Failure::File { action, path, source }
    }
}
