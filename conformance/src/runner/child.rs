//! One worker process, from the runner's side.

use super::protocol::{MARK, Said};
use super::start::Start;
use crate::process::{Usage, resident, usage};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A worker process. Dropped, it is killed.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Said>,
    /// The number of requested cases.
    asked: u32,
    /// The resident memory in bytes when the worker was last idle, if measured.
    kept: u64,
}

/// The reason why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The process ended.
    Ended(String),
    /// The process exceeded the limit of CPU time and was killed.
    TimedOut,
    /// The process waited most of the time and was killed.
    Asleep {
        /// The time since the request.
        time: Duration,
        /// The processor time that it used of that.
        used: Duration,
    },
    /// The process exceeded the memory limit of these cases, in bytes, and was killed.
    TooLarge(u64),
    /// The run was interrupted.
    Interrupted,
}

/// The polling interval while the worker works.
const GLANCE: Duration = Duration::from_millis(50);
/// The multiple of the CPU time limit that a worker may wait, and that it may take in total: on a loaded machine it waits for a
/// processor, which is not the backend's fault.
const ASLEEP: u32 = 3;
const IN_ALL: u32 = 30;
/// The time of waiting that a second of processor time, or of waiting for a processor, makes up for: a worker that uses less
/// than a quarter of a processor waits, also if it wakes up every few milliseconds.
const SHARE: u32 = 3;
/// The number of cases between measurements of the idle worker's memory: libraries that compile or load kernels one by one
/// retain more and more, which is not the fault of a single case.
const CASES: u32 = 32;

impl Worker {
    /// Starts a worker.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn start(Start { mut command, greeting }: Start) -> std::io::Result<Worker> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        #[cfg(unix)]
        {
            // A separate process group: an interrupt from the keyboard reaches only the runner, which ends the worker.
            use std::os::unix::process::CommandExt;
            command.process_group(0);
        }
        let mut child = command.spawn()?;
        let mut stdin = child.stdin.take();
        if let (Some(stdin), Some(greeting)) = (&mut stdin, greeting) {
            // If the worker has ended already, the answer reports it.
            let _ = writeln!(stdin, "{greeting}");
        }
        let (sender, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stdout);
                let mut line = Vec::new();
                loop {
                    line.clear();
                    match reader.read_until(b'\n', &mut line) {
                        Ok(0) | Err(_) => break,
                        Ok(_) => {}
                    }
                    let text = String::from_utf8_lossy(&line);
                    // A backend may print without an end of line before the worker's own message.
                    let said = text.split_once(MARK).and_then(|(_, json)| serde_json::from_str(json).ok());
                    if let Some(said) = said
                        && sender.send(said).is_err()
                    {
                        break;
                    }
                }
            });
        }
        Ok(Worker { child, stdin, lines, asked: 0, kept: 0 })
    }

    /// Sends a case's id.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn ask(&mut self, id: &str) -> std::io::Result<()> {
        if self.asked.is_multiple_of(CASES) {
            self.kept = resident(self.child.id());
        }
        self.asked += 1;
        match &mut self.stdin {
            Some(stdin) => writeln!(stdin, "{id}").and_then(|()| stdin.flush()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Waits for the worker's next message. `limit` is CPU time if the system reports it, else wall time.
    ///
    /// # Errors
    /// The reason why there is no message. The worker has ended then.
    pub fn answer(
        &mut self,
        limit: Duration,
        memory: u64,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Said, Silence> {
        let begun = Instant::now();
        let mut clock = Clock::new(usage(self.child.id()), begun);
        loop {
            match self.lines.recv_timeout(GLANCE) {
                Ok(said) => return Ok(said),
                Err(RecvTimeoutError::Disconnected) => return Err(Silence::Ended(self.end())),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let silence = if interrupted() {
                Silence::Interrupted
            } else if let Some(silence) = clock.over(usage(self.child.id()), Instant::now(), limit) {
                silence
            } else {
                match resident(self.child.id()).saturating_sub(self.kept) {
                    bytes if bytes > memory => Silence::TooLarge(bytes),
                    _ => continue,
                }
            };
            let _ = self.child.kill();
            self.end();
            return Err(silence);
        }
    }

    fn end(&mut self) -> String {
        self.stdin = None;
        match self.child.wait() {
            Ok(status) => how(status),
            Err(error) => error.to_string(),
        }
    }
}

/// CPU time and waiting time of a worker.
#[derive(Debug)]
struct Clock {
    begun: Instant,
    /// The worker's CPU time at the beginning.
    before: Option<Duration>,
    /// The time of the last look at the worker, and its CPU time then.
    seen: (Instant, Duration),
    /// The time that it has waited, less [`SHARE`] times what it has worked since; at least 0.
    waited: Duration,
}

impl Clock {
    fn new(usage: Option<Usage>, now: Instant) -> Clock {
        let before = usage.map(|usage| usage.time);
        Clock { begun: now, before, seen: (now, before.unwrap_or_default()), waited: Duration::ZERO }
    }

    /// The reason why the time is over; `None` if it is not.
    fn over(&mut self, usage: Option<Usage>, now: Instant, limit: Duration) -> Option<Silence> {
        let time = now - self.begun;
        let (Some(before), Some(usage)) = (self.before, usage) else {
            return (time > limit).then_some(Silence::TimedOut);
        };
        let passed = now - self.seen.0;
        let worked = if usage.runs { passed } else { usage.time.saturating_sub(self.seen.1).min(passed) };
        self.seen = (now, usage.time);
        self.waited = (self.waited + (passed - worked)).saturating_sub(worked * SHARE);
        let used = usage.time.saturating_sub(before);
        if used > limit || time > limit * IN_ALL {
            Some(Silence::TimedOut)
        } else if self.waited > limit * ASLEEP {
            Some(Silence::Asleep { time, used })
        } else {
            None
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Describes how a process ended.
fn how(status: ExitStatus) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        if let Some(signal) = status.signal() {
            let name = match signal {
                4 => "SIGILL, an illegal instruction",
                6 => "SIGABRT, an abort",
                7 => "SIGBUS, a bad address",
                8 => "SIGFPE, an arithmetic error",
                9 => "SIGKILL, killed from outside",
                11 => "SIGSEGV, a bad address",
                _ => "a signal",
            };
            return format!("ended by signal {signal} ({name})");
        }
    }
    match status.code() {
        Some(code) => format!(
            "exited with code {code}, as by a call of `exit` during the case; a kernel must return, with an error if it cannot \
             serve the call"
        ),
        None => "ended".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_counts_and_waiting_for_a_processor_does_not() {
        let (begun, limit) = (Instant::now(), Duration::from_secs(10));
        let at = |seconds| begun + Duration::from_secs(seconds);
        let used = |seconds, runs| Some(Usage { time: Duration::from_secs(seconds), runs });
        let mut clock = Clock::new(used(5, true), begun);
        // A loaded machine: 100 seconds for 9 of work.
        assert_eq!(clock.over(used(14, true), at(100), limit), None);
        // Asleep since then, but another thread works a while.
        assert_eq!(clock.over(used(14, false), at(120), limit), None);
        assert_eq!(clock.over(used(15, false), at(121), limit), None);
        assert_eq!(clock.over(used(15, true), at(140), limit), None);
        assert_eq!(clock.over(used(15, false), at(169), limit), None);
        let asleep = Silence::Asleep { time: Duration::from_secs(171), used: limit };
        assert_eq!(clock.over(used(15, false), at(171), limit), Some(asleep));
        assert_eq!(clock.over(used(15, true), at(299), limit), None);
        assert_eq!(clock.over(used(15, true), at(301), limit), Some(Silence::TimedOut));
        let mut clock = Clock::new(used(5, true), begun);
        assert_eq!(clock.over(used(16, true), at(12), limit), Some(Silence::TimedOut));
        // It wakes up every 50 ms, which is a tick of the system's clock each 4 s.
        let mut clock = Clock::new(used(0, false), begun);
        let mut ended = (1..8_000_u32).filter_map(|glance| {
            let time = Duration::from_millis(u64::from(glance / 80) * 10);
            let usage = Usage { time, runs: glance % 500 == 0 };
            clock.over(Some(usage), begun + GLANCE * glance, limit)
        });
        let Some(Silence::Asleep { time, used: worked }) = ended.next() else { panic!("it is not ended") };
        assert!(time < limit * (ASLEEP + 1) && worked < limit / 10, "{time:?}, {worked:?}");
        // If the system does not report CPU time, wall time counts.
        let mut clock = Clock::new(None, begun);
        assert_eq!(clock.over(None, at(9), limit), None);
        assert_eq!(clock.over(None, at(11), limit), Some(Silence::TimedOut));
    }
}
