//! The trial of a library in a separate process before it is first loaded.
//!
//! A new or changed library is opened, set up, registered and asked for its devices, each of whose functions is called
//! once, by a small program, `keyway-probe`, under a time limit. A crash or hang of the probe would have been one of this
//! process and becomes a quarantine record; a library that passes is recorded by its hash and is not probed again.
//!
//! Decisions:
//! - the probe is a program of the project and never the running one: a user's program must not start itself again. It is
//!   named by `KEYWAY_PROBE`, or is next to the running program, next to the library, or in `bin` next to the library's
//!   folder, and is trusted by the same rules as a library. If there is none, or one of another version, libraries are
//!   loaded without a trial, which is logged once. If there is one that cannot work (no more processes or open files, not a
//!   probe at all), a library that is not known good is refused: a temporary shortage must not disable the check;
//! - the library is passed as an open file, the same file that is loaded here afterwards;
//! - a failure caused by the bytes alone is recorded permanently; one that the machine may have caused (its devices, its
//!   speed) only as long as the machine is the same. A reported error of a set-up (an error, a caught panic) is harmless
//!   and reported each time;
//! - a change of process state by loading (limits, umask, working directory, floating-point environment, open files,
//!   timers, a fork) breaks other code without a crash, and is a failure;
//! - the probe waits briefly while threads of the library are running, and exits with a code that is set after the
//!   library's exit handlers;
//! - a trial that ends the program that runs it leaves a record, by which a later one detects this.

mod process;
mod protocol;

use super::cause::Cause;
use super::trust::TrustPolicy;
use super::{LoadError, machine, privilege};
use process::{End, Ended};
pub(crate) use protocol::{COMPLETE, LIBRARY_VARIABLE, Report, Stage};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The environment variable with the path of the probe program, or `off`.
pub const PROBE_VARIABLE: &str = "KEYWAY_PROBE";
/// The environment variable with the time limit, in seconds.
pub const LIMIT_VARIABLE: &str = "KEYWAY_PROBE_SECONDS";

/// The time limit; the first use of a driver may take many seconds.
const LIMIT: Duration = Duration::from_secs(30);
/// More is not a time limit.
const MAX_SECONDS: f64 = 86_400.0;

/// The trial of libraries before they are loaded.
#[derive(Debug, Clone, Default)]
pub struct Probe {
    /// Whether libraries are probed at all.
    pub enabled: bool,
    /// The probe program, if the user named one.
    pub program: Option<PathBuf>,
    /// The arguments of the probe program.
    pub arguments: Vec<OsString>,
    /// The folder of the running program.
    pub beside: Option<PathBuf>,
    /// The time limit for one library.
    pub limit: Duration,
}

/// The time limit that a text states.
fn limit(text: &OsStr) -> Option<Duration> {
    let seconds = text.to_str()?.parse::<f64>().ok().filter(|seconds| *seconds > 0.0)?;
    Some(Duration::from_secs_f64(seconds.min(MAX_SECONDS)))
}

/// The error in `KEYWAY_PROBE_SECONDS`, as one sentence; `None` if there is none, or if it is not read.
pub fn problem() -> Option<String> {
    let text =
        std::env::var_os(LIMIT_VARIABLE).filter(|text| !text.is_empty() && !privilege::is_privileged())?;
    limit(&text).is_none().then(|| {
        format!(
            "{LIMIT_VARIABLE}: `{}` ignored, not a number of seconds above 0: a library may take {} s to load; correct \
             the variable, or unset it",
            text.display(),
            LIMIT.as_secs()
        )
    })
}

/// The programs that failed as probes in this process, with the reason, so that they are not started for each library.
static UNFIT: Mutex<BTreeMap<PathBuf, Outcome>> = Mutex::new(BTreeMap::new());

/// The failure of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) cause: Cause,
    pub(super) reason: String,
    /// The state of the machine that may have caused it.
    pub(super) holds_while: Option<String>,
}

/// The result of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The library was loaded, registered and asked for its devices, and the process ended normally.
    Sound,
    /// The library reported this error, which may be temporary. It is not loaded, and the next program probes it again.
    Answered(String),
    /// The library failed and must not be loaded.
    Failed(Failed),
    /// The library is unknown: there is no probe program of this version.
    NoProbe(String),
    /// The library is unknown: the probe program exists and failed to work.
    CannotTry(String),
}

impl Probe {
    /// A probe configuration without trials.
    pub fn off() -> Probe {
        Probe::default()
    }

    /// The configuration from the environment, which a process with raised privileges ignores.
    pub fn of_process() -> Probe {
        let variable = |name| (!privilege::is_privileged()).then(|| std::env::var_os(name)).flatten();
        let named = variable(PROBE_VARIABLE).filter(|name| !name.is_empty());
        let limit = variable(LIMIT_VARIABLE).and_then(|text| limit(&text));
        Probe {
            enabled: named.as_deref() != Some("off".as_ref()),
            program: named.map(PathBuf::from),
            arguments: Vec::new(),
            beside: std::env::current_exe()
                .ok()
                .and_then(|p| Some(p.canonicalize().ok()?.parent()?.to_path_buf())),
            limit: limit.unwrap_or(LIMIT),
        }
    }

    /// The program that tries a library; an error is the consequence of its absence for the library.
    pub(super) fn find(&self, library: &Path, trust: &TrustPolicy) -> Result<PathBuf, Outcome> {
        let name = format!("keyway-probe{}", std::env::consts::EXE_SUFFIX);
        let folder = library.parent();
        let places = [
            self.beside.as_ref().map(|folder| folder.join(&name)),
            folder.map(|folder| folder.join(&name)),
            folder.and_then(Path::parent).map(|above| above.join("bin").join(&name)),
        ];
        let mut tried: Vec<PathBuf> = match &self.program {
            Some(program) => vec![program.clone()],
            None => places.into_iter().flatten().collect(),
        };
        // The library may be next to the program.
        tried.dedup();
        let there = tried.iter().find_map(|path| path.canonicalize().ok().filter(|p| p.is_file()));
        let Some(program) = there else {
            let tried: Vec<String> = tried.iter().map(|path| path.display().to_string()).collect();
            return Err(Outcome::NoProbe(format!("it is not at {}", tried.join(", "))));
        };
        if self.arguments.is_empty()
            && std::env::current_exe().and_then(|p| p.canonicalize()).is_ok_and(|p| p == program)
        {
            return Err(Outcome::CannotTry(format!("{} is this program itself", program.display())));
        }
        match trust.check(&program) {
            Ok(()) => Ok(program),
            Err(error) => Err(Outcome::CannotTry(format!("{}: {error}", program.display()))),
        }
    }

    /// Probes an open library; `path` is its name in messages.
    pub(super) fn run(&self, program: &Path, path: &Path, library: &File) -> Outcome {
        let unfit = || UNFIT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = unfit().get(program) {
            return outcome.clone();
        }
        let input = match library.try_clone() {
            Ok(file) => Stdio::from(file),
            Err(error) => return Outcome::CannotTry(error.to_string()),
        };
        let mut command = Command::new(program);
        // Only a panic's message is needed, not the backtrace.
        command.args(&self.arguments).env(LIBRARY_VARIABLE, path).env("RUST_BACKTRACE", "0").stdin(input);
        match process::run(&mut command, self.limit) {
            Ok(ended) => {
                let outcome = judge(&ended, self.limit, program);
                if matches!(outcome, Outcome::NoProbe(_) | Outcome::CannotTry(_)) {
                    unfit().insert(program.to_path_buf(), outcome.clone());
                }
                outcome
            }
            Err(error) => Outcome::CannotTry(format!("{} cannot be started: {error}", program.display())),
        }
    }
}

/// Interprets a process that has ended.
fn judge(ended: &Ended, limit: Duration, program: &Path) -> Outcome {
    let report = match Report::read(&ended.output) {
        Ok(report) => report,
        Err(other) => {
            let end = ended.end.describe(limit);
            let should = format!("{} should say that it is of {}", program.display(), machine::host());
            return match other {
                Some(other) => Outcome::NoProbe(format!("{should}, but it is of {other} and {end}")),
                None => {
                    Outcome::CannotTry(format!("{should}, but it does not and {end}{}", ended.last_words()))
                }
            };
        }
    };
    let failed = |cause, reason: String, holds_while| Outcome::Failed(Failed { cause, reason, holds_while });
    let in_order = ended.end == End::Unknown || ended.end == End::Exit(COMPLETE.into());
    match (&report.refused, report.stage) {
        (Some((true, error)), _) if in_order => {
            failed(Cause::Refused, format!("it was refused: {error}"), Some(machine::host()))
        }
        (Some((false, error)), _) if in_order => Outcome::Answered(error.clone()),
        (None, Stage::Ended) if in_order => Outcome::Sound,
        (_, stage) => {
            let cause = match ended.end {
                End::Exit(_) => Cause::Exit,
                End::Signal(_) => Cause::Crash,
                End::TimedOut => Cause::Hang,
                End::Unknown => Cause::Unknown,
            };
            // A busy machine or a broken driver may recover.
            let machines = cause == Cause::Hang || matches!(stage, Stage::Devices | Stage::Using);
            let words = ended.last_words();
            let variables = if machines { machine::variables() } else { Vec::new() };
            let with =
                if variables.is_empty() { String::new() } else { format!(", with {}", variables.join(", ")) };
            let reason = format!("{} while {}{with}{words}", ended.end.describe(limit), stage.describe());
            failed(cause, reason, machines.then(|| machine::boot().to_string()))
        }
    }
}

/// The error for a library that failed; `record` is the path of its quarantine record.
pub(super) fn error(failed: &Failed, record: PathBuf) -> LoadError {
    LoadError::Quarantined { cause: failed.cause, reason: failed.reason.clone(), record }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: i32 = COMPLETE as i32;

    fn ended(lines: &[&str], end: End, errors: &str) -> Ended {
        let mut output = format!("noise\n{}", protocol::greeting());
        lines.iter().for_each(|line| output.push_str(&protocol::line(line)));
        Ended { output: output.into_bytes(), errors: errors.as_bytes().to_vec(), end }
    }

    fn judged(lines: &[&str], end: End, errors: &str) -> Outcome {
        judge(&ended(lines, end, errors), Duration::from_secs(3), Path::new("/p"))
    }

    fn why(outcome: Outcome) -> (Cause, String, Option<String>) {
        match outcome {
            Outcome::Failed(Failed { cause, reason, holds_while }) => (cause, reason, holds_while),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_end_has_its_cause_and_its_stage() {
        let all = ["registering", "devices", "ending", "ended"];
        assert_eq!(judged(&all, End::Exit(DONE), "noise"), Outcome::Sound);
        let (cause, reason, state) = why(judged(&[], End::Signal(libc::SIGILL), ""));
        assert_eq!((cause, state), (Cause::Crash, None));
        assert_eq!(reason, "it was ended by SIGILL (illegal instruction) while it was opened and set up");
        let (cause, reason, _) = why(judged(&[], End::Exit(0), "bye\u{1b}[31m\n"));
        assert_eq!(cause, Cause::Exit);
        assert_eq!(
            reason,
            "it ended the process with exit code 0 while it was opened and set up; its last words: bye [31m"
        );
        let (cause, reason, state) = why(judged(&all[..1], End::TimedOut, ""));
        assert_eq!((cause, state.as_deref()), (Cause::Hang, Some(machine::boot())));
        assert!(
            reason.starts_with("it did not end within 3 s while its contents were registered"),
            "{reason}"
        );
        let (_, _, state) = why(judged(&all[..2], End::Signal(6), ""));
        assert_eq!(state.as_deref(), Some(machine::boot()), "a driver may have done it");
        let (cause, reason, _) = why(judged(&all, End::Signal(11), ""));
        assert_eq!(cause, Cause::Crash);
        assert!(reason.contains("while the process ended"), "{reason}");
        // A destructor that sets a successful exit code.
        let (cause, reason, _) = why(judged(&all, End::Exit(0), ""));
        assert_eq!(cause, Cause::Exit);
        assert!(reason.contains("exit code 0 while the process ended"), "{reason}");
    }

    #[test]
    fn what_the_bytes_decide_is_a_failure_and_what_a_set_up_answers_is_not() {
        let (cause, reason, state) = why(judged(&["refused always expected\\nmore"], End::Exit(DONE), ""));
        assert_eq!((cause, reason.as_str()), (Cause::Refused, "it was refused: expected more"));
        assert_eq!(state, Some(machine::host()));
        assert_eq!(
            judged(&["refused now no driver"], End::Exit(DONE), ""),
            Outcome::Answered("no driver".into())
        );
        let (cause, ..) = why(judged(&["refused now no driver"], End::Signal(6), ""));
        assert_eq!(cause, Cause::Crash, "it may not end the process afterwards either");
    }

    #[test]
    fn a_time_limit_is_a_number_of_seconds_above_0() {
        for (text, expected) in [("2.5", Some(2500)), ("1", Some(1000)), ("inf", Some(86_400_000))] {
            assert_eq!(limit(text.as_ref()).map(|limit| limit.as_millis()), expected, "{text}");
        }
        for text in ["abc", "0", "-1", "nan", "3 s", ""] {
            assert_eq!(limit(text.as_ref()), None, "{text}");
        }
    }

    #[test]
    fn another_program_is_no_probe() {
        let other = Ended { output: b"hello\n".to_vec(), errors: Vec::new(), end: End::Exit(3) };
        let Outcome::CannotTry(text) = judge(&other, LIMIT, Path::new("/p")) else { panic!("{other:?}") };
        assert!(text.contains("/p") && text.contains("exit code 3"), "{text}");
        let later = Ended { output: protocol::line("host 99 abi 1-9").into_bytes(), ..other };
        let Outcome::NoProbe(text) = judge(&later, LIMIT, Path::new("/p")) else { panic!("{later:?}") };
        assert!(text.contains("it is of host 99"), "{text}");
    }

    #[test]
    fn a_program_that_cannot_be_started_tries_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("keyway-probe");
        std::fs::write(&program, "no program").unwrap();
        let library = std::fs::File::open(&program).unwrap();
        let Outcome::CannotTry(text) =
            Probe { enabled: true, ..Probe::default() }.run(&program, Path::new("/l.so"), &library)
        else {
            panic!("it was started")
        };
        assert!(text.contains("cannot be started") && text.contains("keyway-probe"), "{text}");
    }

    #[test]
    fn the_program_is_looked_for_beside_and_is_never_the_running_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("bin")).unwrap();
        std::fs::create_dir_all(root.join("backends")).unwrap();
        let library = root.join("backends/a.so");
        let trust = TrustPolicy { program: None, ..TrustPolicy::of_process() };
        let probe = Probe { enabled: true, ..Probe::default() };
        let Err(Outcome::NoProbe(missing)) = probe.find(&library, &trust) else { panic!("it is there") };
        assert!(
            missing.contains("backends/keyway-probe") && missing.contains("bin/keyway-probe"),
            "{missing}"
        );
        let there = root.join("bin/keyway-probe");
        std::fs::write(&there, "x").unwrap();
        assert_eq!(probe.find(&library, &trust), Ok(there.clone()));
        std::fs::set_permissions(&there, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let unusable = |found| match found {
            Err(Outcome::CannotTry(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(unusable(probe.find(&library, &trust)).contains("not trusted"));
        let own = Probe { program: std::env::current_exe().ok(), ..probe };
        assert!(unusable(own.find(&library, &trust)).contains("this program itself"));
    }
}
