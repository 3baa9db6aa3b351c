//! Starts a worker process. Its job is sent through its standard input, so that neither its arguments nor its environment reveal
//! it: a library may inspect them, and behave well only under test.

use super::worker::Job;
use keyway::dispatcher::loader::judged::POLICY_VARIABLE;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Parameters of a worker process.
#[derive(Debug)]
pub struct Start {
    /// The program with its arguments.
    pub command: Command,
    /// The first line sent to the worker, if it waits for one.
    pub greeting: Option<String>,
}

impl From<Command> for Start {
    fn from(command: Command) -> Start {
        Start { command, greeting: None }
    }
}

/// Prefix of the first line sent to a worker.
const GREETING: &str = "@keyway-worker ";

/// Names of ordinary programs; a worker has one of them.
const NAMES: [&str; 8] = ["main", "train", "infer", "app", "server", "demo", "python3", "a.out"];

/// Words in the names of environment variables of test or task runners, and one that also occurs in values.
const TELLING: [&str; 4] = [JUDGE, "mutants", "nextest", "cargo"];
const JUDGE: &str = "conformance";
/// The prefixes of variables that a worker needs, whatever folders they name.
const NEEDED: [&str; 6] = ["KEYWAY_", "XDG_", "LD_", "PATH", "HOME", "CUDA"];

/// Starts `program`, which calls [`summoned`], as a worker with this job. Its name is one of several common ones, it has no
/// arguments, and no environment variable mentions tests.
pub fn neutral(program: &Path, job: &Job) -> Start {
    let mut command = Command::new(program);
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nth = now.map_or(0, |now| now.subsec_nanos() as usize / 1000);
        command.arg0(NAMES[nth % NAMES.len()]);
    }
    // The library may have failed before. The value `off` would reveal the test to it.
    command.env_remove(POLICY_VARIABLE);
    for (name, value) in std::env::vars_os() {
        if is_removed(&name, &value) {
            command.env_remove(name);
        }
    }
    // Plain data: its serialisation cannot fail.
    let job = serde_json::to_string(job).unwrap_or_default();
    Start { command, greeting: Some(format!("{GREETING}{job}")) }
}

/// Whether a variable reveals a test. A shell passes the path of the program as `_`.
fn is_removed(name: &OsStr, value: &OsStr) -> bool {
    let lower = |text: &OsStr| text.to_string_lossy().to_ascii_lowercase();
    let needed = NEEDED.iter().any(|begin| name.to_string_lossy().starts_with(begin));
    let by_name = name == "_" || TELLING.iter().any(|word| lower(name).contains(word));
    by_name || !needed && lower(value).contains(JUDGE)
}

/// Runs as a worker if [`neutral`] started this process as one; `None` if it did not.
pub fn summoned() -> Option<std::io::Result<()>> {
    let mut arguments = std::env::args_os();
    let name = arguments.next().map(PathBuf::from)?;
    let file = |path: &Path| path.file_name().map(OsString::from);
    // Does not wait for input of a user who passes no arguments.
    let by_its_name = std::env::current_exe().is_ok_and(|own| file(&own) == file(&name));
    if arguments.next().is_some() || by_its_name || std::io::stdin().is_terminal() {
        return None;
    }
    let mut input = std::io::stdin().lock();
    let mut line = String::new();
    input.read_line(&mut line).ok()?;
    let job: Job = serde_json::from_str(line.strip_prefix(GREETING)?).ok()?;
    Some(super::worker::serve(&job, input, std::io::stdout().lock()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::Selection;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_job_is_passed_without_loss_and_not_by_arguments_or_environment() {
        let odd = PathBuf::from(OsStr::from_bytes(b"lib\xff.so"));
        let job = Job {
            name: Some("cpu".to_string()),
            would_serve: None,
            library: Some(odd.clone()),
            backends: vec![odd],
            selection: Selection { seed: 7, ..Selection::default() },
            listed: true,
        };
        let start = neutral(Path::new("/bin/keyway"), &job);
        assert_eq!(start.command.get_args().count(), 0);
        let kept = |name: &OsStr| !start.command.get_envs().any(|(n, value)| n == name && value.is_none());
        let left: Vec<_> = std::env::vars_os().filter(|(name, _)| kept(name)).collect();
        assert!(left.iter().all(|(name, value)| !is_removed(name, value)), "{left:?}");
        for (name, value, expected) in [
            ("CARGO_MANIFEST_DIR", "/x", true),
            ("PWD", "/x/conformance", true),
            ("KEYWAY_BACKEND_PATH", "/x/conformance", false),
            ("PATH", "/opt/x/.cargo/bin", false),
            ("_", "/bin/keyway", true),
        ] {
            assert_eq!(is_removed(OsStr::new(name), OsStr::new(value)), expected, "{name}");
        }
        let greeting = start.greeting.expect("a greeting");
        let job_read: Job =
            serde_json::from_str(greeting.strip_prefix(GREETING).expect("a mark")).expect("a job");
        assert_eq!(
            (job_read.library, job_read.backends, job_read.selection),
            (job.library, job.backends, job.selection)
        );
    }
}
