//! Runs a child process under a time limit, with its output captured, and ends its whole process group afterwards.

use crate::loader::manifest::excerpt;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// More of a report is not read.
const MAX_OUTPUT: usize = 1 << 18;
/// The maximum length of the stored end of standard error in bytes.
const MAX_ERRORS: usize = 4096;
/// The maximum number of its characters that a message quotes.
const MAX_WORDS: usize = 240;
/// The polling interval for a process that has ended without closing its pipes, because another process holds them.
const LOOK: Duration = Duration::from_millis(20);

/// The way in which a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Exit(i32),
    Signal(i32),
    /// The process was killed at the time limit.
    TimedOut,
    /// The exit status is not available: other code of the running program waits for its children.
    Unknown,
}

impl End {
    /// The end as a clause.
    pub(super) fn describe(self, limit: Duration) -> String {
        match self {
            End::Exit(code) => format!("it ended the process with exit code {code}"),
            End::Signal(number) => format!("it was ended by {}", signal(number)),
            End::TimedOut => format!("it did not end within {} s", limit.as_secs_f64()),
            End::Unknown => "it ended the process".to_string(),
        }
    }
}

fn signal(number: i32) -> String {
    let known = match number {
        libc::SIGABRT => "SIGABRT (abort)",
        libc::SIGSEGV => "SIGSEGV (bad memory access or stack overflow)",
        libc::SIGBUS => "SIGBUS (memory that is not there, as in a truncated file)",
        libc::SIGILL => "SIGILL (illegal instruction)",
        libc::SIGFPE => "SIGFPE (arithmetic fault)",
        libc::SIGTRAP => "SIGTRAP (trap)",
        libc::SIGSYS => "SIGSYS (forbidden system call)",
        libc::SIGKILL => "SIGKILL (ended by the system or another process; out of memory?)",
        libc::SIGTERM => "SIGTERM",
        libc::SIGPIPE => "SIGPIPE",
        _ => return format!("signal {number}"),
    };
    known.to_string()
}

/// A process that has ended, with its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) output: Vec<u8>,
    /// The end of standard error.
    pub(super) errors: Vec<u8>,
    pub(super) end: End,
}

impl Ended {
    /// The end of standard error, as a clause to append; empty if there was no output.
    pub(super) fn last_words(&self) -> String {
        let text = String::from_utf8_lossy(&self.errors);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let count = words.chars().count();
        match count {
            0 => String::new(),
            _ => {
                let end: String = words.chars().skip(count.saturating_sub(MAX_WORDS)).collect();
                format!("; its last words: {}", excerpt(&end, MAX_WORDS))
            }
        }
    }
}

/// Runs a command until it ends or the time limit kills it, with every process of its group.
pub(super) fn run(command: &mut Command, limit: Duration) -> io::Result<Ended> {
    let deadline = Instant::now().checked_add(limit);
    // A separate process group: a terminal's interrupt ends this program, and the child detects the end of its parent.
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    let read = follow(&mut child, deadline);
    // SAFETY: kill takes no pointers. The child has not been waited for, so that its number, which is its group's, is
    // not another's.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
    let (output, errors, ended) = match read {
        Ok(read) => read,
        Err(error) => {
            // The first failure is the one to report.
            let _ = child.wait();
            return Err(error);
        }
    };
    let end = match child.wait() {
        _ if !ended => End::TimedOut,
        Ok(status) => {
            status.code().map(End::Exit).or(status.signal().map(End::Signal)).unwrap_or(End::Unknown)
        }
        Err(_) => End::Unknown,
    };
    Ok(Ended { output, errors, end })
}

/// Reads both pipes until the process ends or the deadline passes. The last value returned is whether it ended.
fn follow(child: &mut Child, deadline: Option<Instant>) -> io::Result<(Vec<u8>, Vec<u8>, bool)> {
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    for pipe in
        [out.as_ref().map(AsRawFd::as_raw_fd), err.as_ref().map(AsRawFd::as_raw_fd)].into_iter().flatten()
    {
        // SAFETY: the descriptor is open and ours; the calls take no pointers.
        let done =
            unsafe { libc::fcntl(pipe, libc::F_SETFL, libc::fcntl(pipe, libc::F_GETFL) | libc::O_NONBLOCK) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    loop {
        let ended = has_ended(child);
        // Read after the check, so that all output before the end is read.
        let mut open = drain(&mut out, &mut output)?;
        open |= drain(&mut err, &mut errors)?;
        output.truncate(MAX_OUTPUT);
        let surplus = errors.len().saturating_sub(MAX_ERRORS);
        errors.drain(..surplus);
        if ended {
            return Ok((output, errors, true));
        }
        let left = deadline.map_or(LOOK, |deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Ok((output, errors, false));
        }
        if open {
            wait_for(
                [out.as_ref().map(AsRawFd::as_raw_fd), err.as_ref().map(AsRawFd::as_raw_fd)],
                left.min(LOOK),
            );
        } else {
            // Both pipes are closed: the process is about to end, or continues without them.
            std::thread::sleep(left.min(Duration::from_millis(1)));
        }
    }
}

/// Reads the available bytes. Returns whether more may follow; at its end the pipe is dropped.
fn drain(pipe: &mut Option<impl Read>, into: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 4096];
    // Bounded, so that a process with endless output does not block its reader.
    for _ in 0..64 {
        let Some(reader) = pipe else { return Ok(false) };
        match reader.read(&mut buffer) {
            Ok(0) => *pipe = None,
            Ok(n) => into.extend_from_slice(&buffer[..n]),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

/// Sleeps until one of the pipes is readable or closed.
fn wait_for(pipes: [Option<i32>; 2], limit: Duration) {
    // A negative descriptor is ignored.
    let mut list = pipes.map(|fd| libc::pollfd { fd: fd.unwrap_or(-1), events: libc::POLLIN, revents: 0 });
    let limit = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX).max(1);
    // SAFETY: the list is valid for its length and lives until the call returns. After a failure it is called again.
    unsafe { libc::poll(list.as_mut_ptr(), list.len() as libc::nfds_t, limit) };
}

/// Whether the process has ended; it remains a zombie until waited for.
fn has_ended(child: &Child) -> bool {
    // SAFETY: all zeros are a value of this plain structure.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` is writable until the call returns.
    let code = unsafe { libc::waitid(libc::P_PID, child.id(), &mut info, flags) };
    // SAFETY: the call filled the structure in, or did not write its zeros.
    let number = unsafe { info.si_pid() };
    // A failure means that other code has already waited for this program's children.
    code != 0 || number != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit_ms: u64) -> (Ended, Duration) {
        let start = Instant::now();
        let mut command = Command::new("/bin/sh");
        let ended =
            run(command.args(["-c", script]).stdin(Stdio::null()), Duration::from_millis(limit_ms)).unwrap();
        (ended, start.elapsed())
    }

    #[test]
    fn each_end_is_reported_with_what_was_printed() {
        let (ended, _) = shell("echo out; echo err >&2; exit 3", 20_000);
        assert_eq!((ended.output.as_slice(), ended.errors.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
        assert_eq!(ended.end, End::Exit(3));
        assert_eq!(shell("kill -ILL $$", 20_000).0.end, End::Signal(libc::SIGILL));
        let (ended, time) = shell("echo begun; sleep 60", 200);
        assert_eq!((ended.output.as_slice(), ended.end), (&b"begun\n"[..], End::TimedOut));
        assert!(time < Duration::from_secs(20), "{time:?}");
    }

    #[test]
    fn a_process_left_behind_is_ended_and_not_waited_for() {
        let (ended, time) = shell("sleep 60 & echo $!; exit 0", 30_000);
        assert_eq!(ended.end, End::Exit(0));
        assert!(time < Duration::from_secs(20), "{time:?}");
        let left: i32 = String::from_utf8(ended.output).unwrap().trim().parse().unwrap();
        // It may remain a zombie of the process that adopts it.
        let state = || std::fs::read_to_string(format!("/proc/{left}/stat")).unwrap_or_default();
        let gone = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            state().is_empty() || state().contains(") Z ")
        });
        assert!(gone, "{}", state());
    }

    #[test]
    fn endless_output_does_not_fill_memory() {
        let (ended, _) = shell("while :; do echo 0123456789012345678901234567890123456789; done", 300);
        assert_eq!(ended.end, End::TimedOut);
        assert!(!ended.output.is_empty() && ended.output.len() <= MAX_OUTPUT);
        let (ended, _) = shell("while :; do echo 0123456789012345678901234567890123456789 >&2; done", 300);
        assert!(!ended.errors.is_empty() && ended.errors.len() <= MAX_ERRORS);
    }
}
