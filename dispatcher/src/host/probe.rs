//! The work of `keyway-probe`: loads one library in this process, registers its contents, counts its devices and exits.
//! `loader/probe` evaluates the report in the program that started it.

use super::surroundings::Surroundings;
use crate::device;
use crate::loader::probe::{COMPLETE, LIBRARY_VARIABLE, Report, Stage};
use crate::loader::{self, LoadError};
use crate::{Device, registry};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The grace period for a thread that a library started and that may end the process.
const MOMENT: Duration = Duration::from_millis(1200);
/// The polling interval for such processes and threads.
const LOOK: Duration = Duration::from_millis(20);
/// The reason for refusing a library whose initialisation returns twice.
const FORKED: &str = "loading it forks the process, and both processes go on as the program";
/// Maximum number of devices whose properties are queried.
const MAX_ASKED: u32 = 64;
/// The library as standard input.
const LIBRARY: &str = if cfg!(target_os = "linux") { "/proc/self/fd/0" } else { "/dev/fd/0" };

/// Runs one probe. The exit code is 93 if the report is complete, whatever its content, and 2 for wrong usage.
pub fn main() -> ExitCode {
    let Some(library) = std::env::var_os(LIBRARY_VARIABLE).map(PathBuf::from) else {
        eprintln!(
            "keyway-probe {}: tries one backend in a process of its own. Programs that use Keyway start it; \
             `keyway backend verify` does so by hand.",
            env!("CARGO_PKG_VERSION")
        );
        return ExitCode::from(2);
    };
    let tried = own_report().and_then(|mut report| {
        confine();
        Report::greet(&mut report)?;
        attempt(&library, &mut report)
    });
    match tried {
        Ok(()) => ExitCode::from(COMPLETE),
        Err(error) => {
            eprintln!("keyway-probe: the report cannot be written: {error}");
            ExitCode::from(1)
        }
    }
}

fn attempt(library: &Path, report: &mut impl Write) -> io::Result<()> {
    Report::begin(report, Stage::Opening)?;
    let (before, threads, process) = (Surroundings::now(), threads(), std::process::id());
    let loaded = loader::open_for_trial(Path::new(LIBRARY), library, super::table(), super::take_message);
    if std::process::id() != process {
        // The original process waits for this one, and ends the report.
        Report::refuse(report, true, FORKED)?;
        super::leave(COMPLETE);
    }
    wait_for_children();
    let plugin = match loaded {
        Ok(plugin) => plugin,
        Err(error) => return refuse(report, &error),
    };
    if let Some(changed) = before.changed() {
        return Report::refuse(report, true, &format!("loading it changes the process: {changed}"));
    }
    Report::begin(report, Stage::Registering)?;
    if let Some(refused) = super::install::install_all([&plugin]).into_iter().next() {
        return refuse(report, &refused.error);
    }
    Report::begin(report, Stage::Devices)?;
    for entry in registry::devices() {
        let (count, _) = device::count(entry);
        for index in 0..u16::try_from(count.min(MAX_ASKED)).unwrap_or(0) {
            // The result is ignored: an unusable device is reported to its user.
            let _ = device::properties(Device { kind: entry.kind, index });
        }
    }
    Report::begin(report, Stage::Using)?;
    for entry in registry::devices() {
        device::exercise::without_device(entry);
        // The functions are the same for all of its devices.
        if device::count(entry).0 > 0 {
            device::exercise::with_device(Device { kind: entry.kind, index: 0 });
        }
    }
    Report::begin(report, Stage::Ending)?;
    wait_for_threads(threads);
    if let Some(changed) = before.changed_in_use() {
        return Report::refuse(report, true, &format!("using it changes the process: {changed}"));
    }
    Report::begin(report, Stage::Ended)
}

/// Waits briefly for a process that a library forked and that may continue as a copy of this one; a helper that executes
/// another program may continue.
fn wait_for_children() {
    let begin = Instant::now();
    while begin.elapsed() < MOMENT && has_children() {
        std::thread::sleep(LOOK);
    }
}

/// Whether this process has children, all of them running.
fn has_children() -> bool {
    let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the structure is writable until the call returns, and zeros are a valid value, which is unchanged if no child has
    // ended.
    unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), flags) == 0 && info.assume_init().si_pid() == 0 }
}

/// The number of threads of this process; `None` if the system does not report it.
fn threads() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}

/// Waits briefly if a library started threads, so that their failures are detected.
fn wait_for_threads(before: Option<usize>) {
    let Some(before) = before else { return std::thread::sleep(MOMENT) };
    let begin = Instant::now();
    while begin.elapsed() < MOMENT && threads().is_none_or(|now| now > before) {
        std::thread::sleep(LOOK);
    }
}

fn refuse(report: &mut impl Write, error: &LoadError) -> io::Result<()> {
    Report::refuse(report, error.is_of_the_bytes(), &error.to_string())
}

/// Reserves standard output for the report: output of the library is redirected to standard error.
fn own_report() -> io::Result<File> {
    // SAFETY: the calls take no pointers; a returned descriptor is uniquely owned.
    unsafe {
        // Above the first few descriptors, which a library may close or reuse, if the limit allows.
        let copy = |lowest: libc::c_int| libc::fcntl(1, libc::F_DUPFD_CLOEXEC, lowest);
        let own = match copy(100) {
            own if own < 0 => copy(3),
            own => own,
        };
        if own < 0 || libc::dup2(2, 1) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(File::from_raw_fd(own))
    }
}

/// Limits the harm of a library that fails. Each step may be refused, and a trial works without it.
fn confine() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure lives until the call returns. No core files of failed trials.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the call takes no pointers. No process waits for the report any more, so this process ends.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        // If memory is exhausted, the system kills this process first.
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    }
}
