//! Process statistics from the operating system.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Resident bytes of a process, in pages of 4 kB; 0 if the system does not report it.
pub fn resident(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).map_or(0, |pages| pages * 4096)
}

/// Resource usage and state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Processor time of all its threads.
    pub time: Duration,
    /// Whether one of its threads is running or runnable.
    pub runs: bool,
}

/// The number of clock ticks of a second, which is the same on Linux for all architectures.
const TICKS: u64 = 100;

/// Resource usage and state of a process; `None` if the system does not report it.
pub fn usage(process: u32) -> Option<Usage> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program is in parentheses, and may contain any characters.
    let mut fields = text[text.rfind(')')? + 1..].split_whitespace();
    let runs = fields.next()? == "R" || has_runnable_thread(process);
    let mut ticks = fields.skip(10).map_while(|field| field.parse::<u64>().ok());
    let used = ticks.next()? + ticks.next()?;
    Some(Usage { time: Duration::from_millis(used * 1000 / TICKS), runs })
}

/// Whether a thread other than the main one is running or runnable: on a loaded machine it waits for a processor.
fn has_runnable_thread(process: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return false };
    threads.flatten().any(|thread| {
        let text = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        text.rfind(')').is_some_and(|end| text[end + 1..].trim_start().starts_with('R'))
    })
}

/// The CPU time of the calling thread; `None` if the system does not report it.
pub fn thread_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// The count if the process has reached its limit of open files (`EMFILE`), so that the count cannot be read.
pub const NONE_LEFT: usize = usize::MAX;
/// The error code on Linux.
const EMFILE: i32 = 24;

/// The numbers of open descriptors and of threads of this process; 0 if the system does not report them, [`NONE_LEFT`] if
/// no descriptor is left to read them with.
pub fn held() -> [usize; 2] {
    ["fd", "task"].map(|what| match std::fs::read_dir(format!("/proc/self/{what}")) {
        Ok(entries) => entries.count(),
        Err(error) if error.raw_os_error() == Some(EMFILE) => NONE_LEFT,
        Err(_) => 0,
    })
}

/// Unreaped child processes of the calling thread, as numbers separated by blanks; empty if the system does not report them.
pub fn children() -> String {
    std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default()
}

/// Process-wide settings that a kernel must leave unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    folder: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    /// The lines of `/proc/self/status` with the ignored and handled signals, and the umask.
    signals: Vec<String>,
}

impl Settings {
    /// The current settings.
    pub fn now() -> Settings {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let is_reported =
            |line: &&str| ["SigIgn:", "SigCgt:", "Umask:"].iter().any(|name| line.starts_with(name));
        Settings {
            folder: std::env::current_dir().ok(),
            environment: std::env::vars_os().collect(),
            signals: status.lines().filter(is_reported).map(String::from).collect(),
        }
    }

    /// Describes the first difference.
    pub fn changed(&self, now: &Settings) -> Option<&'static str> {
        if self.folder != now.folder {
            return Some("another working directory");
        }
        if self.environment != now.environment {
            return Some("another environment variable");
        }
        (self.signals != now.signals).then_some("another handling of signals, or mode of new files")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn children_are_reported_until_they_are_waited_for() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        assert!(children().split_whitespace().any(|own| own == child.id().to_string()));
        child.wait().unwrap();
        assert!(!children().split_whitespace().any(|own| own == child.id().to_string()));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn processor_time_excludes_sleep() {
        let own = || usage(std::process::id()).expect("the system says it").time;
        let used = |work: &dyn Fn()| {
            let before = own();
            work();
            own() - before
        };
        let begun = std::time::Instant::now();
        let busy = used(&|| while own() < Duration::from_millis(100) && begun.elapsed().as_secs() < 60 {});
        assert!(own() >= Duration::from_millis(100), "{busy:?}");
        let mut asleep = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let usage = usage(asleep.id()).expect("the system says it");
        asleep.kill().unwrap();
        asleep.wait().unwrap();
        assert!(!usage.runs && usage.time < Duration::from_millis(400), "{usage:?}");
        assert_eq!(super::usage(u32::MAX), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_that_is_written_to_is_seen() {
        const MORE: u64 = 64 << 20;
        let before = resident(std::process::id());
        let held = std::hint::black_box(vec![1u8; MORE as usize]);
        let grown = resident(std::process::id()).saturating_sub(before);
        assert!(before > 0 && grown > MORE / 2, "{before} bytes, then {grown} more for {}", held.len());
        assert_eq!(resident(u32::MAX), 0);
    }
}
