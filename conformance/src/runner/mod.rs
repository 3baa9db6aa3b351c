//! Runs cases in worker processes, so that a crash, a hang or excessive memory use is one failed row.

mod child;
mod paths;
mod protocol;
mod selection;
mod start;
mod tested_kernel;
mod timeouts;
mod watch;
pub mod worker;

pub use child::{Silence, Worker};
pub use protocol::{CaseName, Judged, Kernels, Said};
pub use selection::{Selection, SelectionError, WHOLE};
pub use start::{Start, neutral, summoned};
pub use timeouts::{CASES_OF_A_KERNEL, KERNELS_OF_A_RUN};
pub use watch::{LONG, Running};

use crate::families::DRAWN;
use crate::outcome::Outcome;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use timeouts::Timeouts;
use watch::Watch;

/// Limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Worker processes.
    pub jobs: usize,
    /// The maximum number of workers for an asynchronous device: they share it in turns, and a case of many steps waits for
    /// a turn at each.
    pub turns: usize,
    /// The maximum CPU time of a case; it may wait three times as long, and take thirty times as long in total.
    pub timeout: Duration,
    /// The time after which no further drawn case begins, summed over all workers; 0 draws none.
    pub drawing: Duration,
    /// Maximum resident memory of a worker above its idle memory, in bytes.
    pub memory: u64,
}

/// A case and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// The case.
    pub case: CaseName,
    /// The outcome of the case.
    pub outcome: Outcome,
    /// The call as text, for a case that failed.
    pub call: Option<String>,
    /// The reference of its results, if it is not the oracle.
    pub judged_by: Option<String>,
    /// The id of a simpler call that also fails; `call` is that one.
    pub shrunk: Option<String>,
    /// Whether it failed and then passed in a fresh process; see [`again`].
    pub passed_alone: bool,
    /// Whether the plugin panicked.
    pub panicked: bool,
    /// The duration of the case.
    pub duration: Duration,
}

impl Finished {
    /// A case without an answer from a worker.
    fn unanswered(case: &CaseName, outcome: Outcome, duration: Duration) -> Finished {
        Finished {
            case: case.clone(),
            outcome,
            call: None,
            judged_by: None,
            shrunk: None,
            passed_alone: false,
            panicked: false,
            duration,
        }
    }
}

/// Results of a run.
#[derive(Debug)]
pub struct Ran {
    /// The tested plugin.
    pub judged: Judged,
    /// Every case that ended, in the order of the listing.
    pub finished: Vec<Finished>,
    /// The number of cases to run, without those that were omitted.
    pub wanted: usize,
    /// The number of drawn cases that were omitted after their time limit.
    pub left_out: usize,
    /// Whether the run was interrupted, or ended because of a case.
    pub interrupted: bool,
    /// Whether the library's file had changed when a later worker loaded it.
    pub changed: bool,
    /// The duration of the run.
    pub duration: Duration,
}

/// The reason why nothing was run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The question was wrong.
    #[error("{0}")]
    Usage(String),
    /// The backend cannot be tested.
    #[error("{0}")]
    Backend(String),
    /// A worker could not be started.
    #[error("cannot start a worker process: {0}")]
    Start(String),
}

/// Creates a worker's command, with or without a list of its cases.
pub type Starter<'a> = &'a (dyn Fn(bool) -> Start + Sync);

/// Loading and listing may take longer than a case.
const READY: Duration = Duration::from_secs(60);

/// The work of a worker before its first case.
const LOADING: &str = "loading the backend";

struct Shared<'a> {
    command: Starter<'a>,
    limits: Limits,
    watch: Watch<'a>,
    /// Whether to begin no further case.
    enough: AtomicBool,
    queue: Mutex<VecDeque<usize>>,
    judged: &'a Judged,
    changed: AtomicBool,
    cases: &'a [CaseName],
    done: &'a (dyn Fn(&Judged, Progress, &Finished) -> ControlFlow<()> + Sync),
    count: AtomicUsize,
    /// The time of drawn cases in microseconds, and the number of those omitted.
    drawing: AtomicU64,
    left_out: AtomicUsize,
    /// Whether each kernel ran a call.
    reached: Mutex<Vec<bool>>,
    timeouts: Mutex<Timeouts>,
}

/// Progress of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The cases that ended.
    pub done: usize,
    /// All of them.
    pub all: usize,
}

/// Runs all cases that a worker lists, except those after [`CASES_OF_A_KERNEL`] time-outs of their kernel, and all after
/// time-outs of [`KERNELS_OF_A_RUN`] kernels: these end as [`Outcome::NotRun`], and drawn ones are omitted in the latter
/// case. `command` starts a worker; its argument is whether the worker lists its cases. `stop` ends the run early. `done`
/// is called with each finished case and returns whether to continue; `running` reports a case that takes long.
///
/// # Errors
/// [`RunError`].
pub fn run(
    command: Starter<'_>,
    limits: Limits,
    stop: &AtomicBool,
    done: &(dyn Fn(&Judged, Progress, &Finished) -> ControlFlow<()> + Sync),
    running: Running<'_>,
) -> Result<Ran, RunError> {
    let begun = Instant::now();
    let watch = Watch { stop, running, every: LONG };
    let (first, mut judged, cases) = ready(command(true), limits, watch)?;
    let registered = judged.kernels.iter().map(|kernels| kernels.registered).sum();
    let shared = Shared {
        command,
        limits,
        watch,
        enough: AtomicBool::new(false),
        queue: Mutex::new((0..cases.len()).collect()),
        judged: &judged,
        changed: AtomicBool::new(false),
        cases: &cases,
        done,
        count: AtomicUsize::new(0),
        drawing: AtomicU64::new(0),
        left_out: AtomicUsize::new(0),
        reached: Mutex::new(vec![false; registered]),
        timeouts: Mutex::default(),
    };
    let mut finished: Vec<(usize, Finished)> = std::thread::scope(|scope| {
        let mut first = Some(first);
        let jobs = if judged.asynchronous { limits.jobs.min(limits.turns) } else { limits.jobs };
        let handles: Vec<_> = (0..jobs.clamp(1, cases.len().max(1)))
            .map(|_| {
                let worker = first.take();
                let shared = &shared;
                scope.spawn(move || drain(shared, worker))
            })
            .collect();
        handles.into_iter().flat_map(|h| h.join().unwrap_or_default()).collect()
    });
    finished.sort_by_key(|(nth, _)| *nth);
    let changed = shared.changed.load(Ordering::Relaxed);
    let left_out = shared.left_out.load(Ordering::Relaxed);
    let wanted = cases.len() - left_out;
    let enough = shared.enough.load(Ordering::Relaxed) && finished.len() < wanted;
    let reached = shared.reached.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut reached = reached.into_iter();
    for kernels in &mut judged.kernels {
        kernels.reached = reached.by_ref().take(kernels.registered).filter(|reached| *reached).count();
    }
    Ok(Ran {
        judged,
        changed,
        wanted,
        left_out,
        finished: finished.into_iter().map(|(_, f)| f).collect(),
        interrupted: enough || stop.load(Ordering::Relaxed),
        duration: begun.elapsed(),
    })
}

/// The number of failures that [`again`] repeats.
const AGAIN: usize = 5;

/// Repeats the first cases with wrong results, each in a fresh worker, and marks those that pass there. `wanted` decides by
/// id whether to repeat a case; the other parameters are those of [`run`].
pub fn again(
    command: Starter<'_>,
    limits: Limits,
    stop: &AtomicBool,
    ran: &mut Ran,
    wanted: &dyn Fn(&str) -> bool,
    running: Running<'_>,
) {
    let watch = Watch { stop, running, every: LONG };
    let failed = |f: &&mut Finished| matches!(f.outcome, Outcome::Failed(_)) && wanted(&f.case.id);
    let queue: Mutex<Vec<&mut Finished>> =
        Mutex::new(ran.finished.iter_mut().filter(failed).take(AGAIN).collect());
    let next = || queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop();
    std::thread::scope(|scope| {
        for _ in 0..limits.jobs.clamp(1, AGAIN) {
            scope.spawn(|| {
                while let Some(finished) = next().filter(|_| !stop.load(Ordering::Relaxed)) {
                    finished.passed_alone = passes_alone(command(false), limits, watch, &finished.case.id);
                }
            });
        }
    });
}

/// Whether a case passes in a worker that ran nothing before.
fn passes_alone(start: Start, limits: Limits, watch: Watch<'_>, id: &str) -> bool {
    let Ok((mut worker, ..)) = ready(start, limits, watch) else { return false };
    // If the worker has ended, the answer reports it.
    let _ = worker.ask(id);
    let said = worker.answer(limits.timeout, limits.memory, &watch.over(id));
    matches!(
        said,
        Ok(Said::Done { id: of, outcome: Outcome::Passed | Outcome::ByOthers { .. }, .. }) if of == id
    )
}

/// Starts a worker and waits until it has listed the cases.
fn ready(
    start: Start,
    limits: Limits,
    watch: Watch<'_>,
) -> Result<(Worker, Judged, Vec<CaseName>), RunError> {
    let mut worker = Worker::start(start).map_err(|e| RunError::Start(e.to_string()))?;
    match worker.answer(READY.max(limits.timeout), limits.memory, &watch.over(LOADING)) {
        Ok(Said::Ready { judged, cases }) => Ok((worker, judged, cases)),
        Ok(Said::Refused { reason, usage: true }) => Err(RunError::Usage(reason)),
        Ok(Said::Refused { reason, usage: false }) => Err(RunError::Backend(reason)),
        Ok(Said::Done { .. }) => Err(RunError::Start("it answers what was not asked".to_string())),
        Err(silence) => Err(RunError::Backend(format!("{LOADING} {}", died(&silence, limits)))),
    }
}

/// Runs cases until the queue is empty, with one worker at a time.
fn drain(shared: &Shared<'_>, mut worker: Option<Worker>) -> Vec<(usize, Finished)> {
    let mut finished = Vec::new();
    loop {
        let next = shared.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop_front();
        let ends = shared.watch.stop.load(Ordering::Relaxed) || shared.enough.load(Ordering::Relaxed);
        let Some(nth) = next.filter(|_| !ends) else { return finished };
        let case = &shared.cases[nth];
        let drawn = case.family == DRAWN;
        let (refusal, ended) = {
            let timeouts = shared.timeouts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            (timeouts.refusal(&case.kernel), timeouts.end_the_run())
        };
        let drawn_for = u128::from(shared.drawing.load(Ordering::Relaxed));
        if drawn && (ended || drawn_for >= shared.limits.drawing.as_micros()) {
            shared.left_out.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        let begun = Instant::now();
        let result = match refusal {
            Some(reason) => Finished::unanswered(case, Outcome::NotRun { reason }, Duration::ZERO),
            None => match one(shared, &mut worker, case) {
                Some(result) => result,
                None => return finished,
            },
        };
        if drawn {
            shared.drawing.fetch_add(begun.elapsed().as_micros() as u64, Ordering::Relaxed);
        }
        let done = shared.count.fetch_add(1, Ordering::Relaxed) + 1;
        let progress = Progress { done, all: shared.cases.len() - shared.left_out.load(Ordering::Relaxed) };
        if (shared.done)(shared.judged, progress, &result).is_break() {
            shared.enough.store(true, Ordering::Relaxed);
        }
        finished.push((nth, result));
    }
}

/// Runs a case; if its worker ends, repeats it in a fresh one, to distinguish a case that kills its worker from one that
/// ran after another had damaged it. `None` if interrupted.
fn one(shared: &Shared<'_>, worker: &mut Option<Worker>, case: &CaseName) -> Option<Finished> {
    let mut first: Option<String> = None;
    let mut fresh = worker.is_none();
    loop {
        let begun = Instant::now();
        let said = match attempt(shared, worker, case) {
            Ok(said) => said,
            Err(Silence::Interrupted) => return None,
            Err(silence) => {
                *worker = None;
                let how = died(&silence, shared.limits);
                let lost = matches!(silence, Silence::Ended(_)) && !fresh && first.is_none();
                if lost {
                    (first, fresh) = (Some(how), true);
                    continue;
                }
                if matches!(silence, Silence::TimedOut | Silence::Asleep { .. }) {
                    shared.timeouts.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).add(&case.kernel);
                }
                return Some(Finished::unanswered(case, Outcome::Died { how }, begun.elapsed()));
            }
        };
        let Said::Done { id, outcome, call, judged_by, shrunk, reached, spoiled, panicked, micros } = said
        else {
            continue;
        };
        let mut known = shared.reached.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        reached.into_iter().for_each(|kernel| {
            if let Some(known) = known.get_mut(kernel as usize) {
                *known = true;
            }
        });
        drop(known);
        let outcome = match id == case.id {
            true => outcome,
            false => Outcome::Died { how: format!("answered `{id}`, which it was not asked") },
        };
        if spoiled || id != case.id {
            // Further output would be the result of the panic.
            *worker = None;
        }
        let outcome = match first {
            Some(how) => Outcome::Died { how: format!("{how}; alone in a fresh process it did not") },
            None => outcome,
        };
        let duration = Duration::from_micros(micros);
        let case = case.clone();
        return Some(Finished {
            case,
            outcome,
            call,
            judged_by,
            shrunk,
            passed_alone: false,
            panicked,
            duration,
        });
    }
}

fn attempt(shared: &Shared<'_>, worker: &mut Option<Worker>, case: &CaseName) -> Result<Said, Silence> {
    if worker.is_none() {
        match ready((shared.command)(false), shared.limits, shared.watch) {
            Ok((started, judged, _)) => {
                shared.changed.fetch_or(judged.stamp != shared.judged.stamp, Ordering::Relaxed);
                *worker = Some(started);
            }
            Err(_) if shared.watch.stop.load(Ordering::Relaxed) => return Err(Silence::Interrupted),
            Err(error) => return Err(Silence::Ended(error.to_string())),
        }
    }
    let Some(worker) = worker else { return Err(Silence::Ended("there is no worker".to_string())) };
    // If the worker has ended, the answer reports it.
    let _ = worker.ask(&case.id);
    worker.answer(shared.limits.timeout, shared.limits.memory, &shared.watch.over(&case.id))
}

fn died(silence: &Silence, limits: Limits) -> String {
    match silence {
        Silence::Ended(how) => how.clone(),
        Silence::TimedOut => format!("took more than {} s and was ended", limits.timeout.as_secs_f64()),
        Silence::Asleep { time, used } => format!(
            "waited most of {:.0} s, with {:.1} s of processor time, and was ended",
            time.as_secs_f64(),
            used.as_secs_f64()
        ),
        Silence::TooLarge(bytes) => format!(
            "took {} MB of memory for it, more than the {} MB allowed, and was ended",
            bytes >> 20,
            limits.memory >> 20
        ),
        Silence::Interrupted => "was interrupted".to_string(),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::process::Command;

    /// A worker that implements the protocol: each case except the first has a wrong result, and `b` always has.
    const SCRIPT: &str = r#"
        named() { printf '{"id":"%s","family":"values","op":"add","dtype":"f32","sample":0}' $1; }
        judged='{"plugin":"p","version":"1","library":"libp.so","stamp":null,"device":"cpu:0","registers":[],"rejected":[]}'
        echo "@keyway-conformance {\"ready\":{\"judged\":$judged,\"cases\":[$(named a),$(named b),$(named c)]}}"
        before=0
        while read id; do
            outcome='{"outcome":"passed"}'
            if [ $before -gt 0 ] || [ $id = b ]; then
                outcome='{"outcome":"failed","what":"w","expected":"e","got":"g","mismatch":null}'
            fi
            before=1
            answer="{\"id\":\"$id\",\"outcome\":$outcome,\"call\":null,\"judged_by\":null,\"spoiled\":false,\"panicked\":false,\"micros\":1}"
            echo "@keyway-conformance {\"done\":$answer}"
        done
    "#;

    fn worker(_: bool) -> Start {
        scripted(SCRIPT)
    }

    fn scripted(script: &str) -> Start {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]);
        command.into()
    }

    const LIMITS: Limits = Limits {
        jobs: 1,
        turns: 1,
        timeout: Duration::from_secs(20),
        drawing: Duration::from_secs(20),
        memory: 1 << 30,
    };

    #[test]
    fn a_failure_that_depends_on_earlier_cases_is_distinguished() {
        let limits = LIMITS;
        let stop = AtomicBool::new(false);
        let noted = |wanted: &dyn Fn(&str) -> bool| -> Vec<(bool, bool)> {
            let mut ran =
                run(&worker, limits, &stop, &|_, _, _| ControlFlow::Continue(()), &|_, _| {}).unwrap();
            assert!(!ran.interrupted);
            assert!(ran.finished.iter().all(|finished| !finished.passed_alone));
            again(&worker, limits, &stop, &mut ran, wanted, &|_, _| {});
            ran.finished.iter().map(|f| (f.outcome.is_failure(), f.passed_alone)).collect()
        };
        assert_eq!(noted(&|_| true), [(false, false), (true, false), (true, true)]);
        assert_eq!(noted(&|id| id != "c"), [(false, false), (true, false), (true, false)]);
    }

    #[test]
    fn an_answer_to_another_case_counts_for_none() {
        // Simulates a worker that a kernel has forked: both answer.
        let twice = SCRIPT.replace(
            "done\n    ",
            "[ $id = a ] && echo \"@keyway-conformance {\\\"done\\\":$answer}\"\n done\n",
        );
        assert_ne!(twice, SCRIPT);
        let command = |_| scripted(&twice);
        let limits = LIMITS;
        let ran =
            run(&command, limits, &AtomicBool::new(false), &|_, _, _| ControlFlow::Continue(()), &|_, _| {})
                .unwrap();
        let outcomes: Vec<_> = ran.finished.into_iter().map(|finished| finished.outcome).collect();
        let expected = Outcome::Died { how: "answered `a`, which it was not asked".to_string() };
        assert_eq!(outcomes, [Outcome::Passed, expected, Outcome::Passed]);
    }

    #[test]
    fn what_is_drawn_ends_when_its_time_is_over() {
        let drawn = SCRIPT.replace(r#""family":"values""#, r#""family":"drawn""#);
        assert_ne!(drawn, SCRIPT);
        let limits = Limits { drawing: Duration::from_micros(1), ..LIMITS };
        let all = |_: &_, _, _: &_| ControlFlow::Continue(());
        let ran = run(&|_| scripted(&drawn), limits, &AtomicBool::new(false), &all, &|_, _| {}).unwrap();
        assert_eq!((ran.finished.len(), ran.wanted, ran.left_out, ran.interrupted), (1, 1, 2, false));
        let ran = run(&|_| scripted(&drawn), LIMITS, &AtomicBool::new(false), &all, &|_, _| {}).unwrap();
        assert_eq!((ran.finished.len(), ran.wanted, ran.left_out), (3, 3, 0));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_case_that_works_or_sleeps_without_end_is_ended() {
        for (never, how) in [
            ("while :; do :; done", "took more than 0.3 s"),
            ("sleep 600", "waited most of"),
            ("while :; do sleep 0.05; done", "waited most of"),
        ] {
            let script = SCRIPT.replace("before=1\n", &format!("before=1\n[ $id = b ] && {{ {never}; }}\n"));
            assert_ne!(script, SCRIPT);
            let limits = Limits { timeout: Duration::from_millis(300), ..LIMITS };
            let all = |_: &_, _, _: &_| ControlFlow::Continue(());
            let ran = run(&|_| scripted(&script), limits, &AtomicBool::new(false), &all, &|_, _| {}).unwrap();
            match &ran.finished[1].outcome {
                Outcome::Died { how: reason } => assert!(reason.starts_with(how), "{reason}"),
                other => panic!("{other:?}"),
            }
            assert_eq!(ran.finished[2].outcome, Outcome::Passed, "a fresh worker goes on");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_kernel_that_hangs_costs_a_few_time_limits_and_many_kernels_end_the_run() {
        // Cases of `of` kernels, alternating, and a last one that would pass.
        let judge = |of: usize, each: usize| -> (Ran, Vec<&'static str>) {
            let one = |id: String, kernel: String| {
                format!(
                    r#"{{\"id\":\"{id}\",\"family\":\"values\",\"op\":\"add\",\"dtype\":\"f32\",\"sample\":0,\"kernel\":\"{kernel}\"}}"#
                )
            };
            let hanging =
                (0..of * each).map(|nth| one(format!("hangs{nth}"), format!("kernel {}", nth % of)));
            let cases: Vec<String> =
                hanging.chain([one("last".to_string(), "kernel of last".to_string())]).collect();
            let script = SCRIPT
                .replace("$(named a),$(named b),$(named c)", &cases.join(","))
                .replace("before=1\n", "case $id in hangs*) while :; do :; done;; esac\n");
            assert!(script.contains("hangs0") && script.contains("esac"));
            let limits = Limits { timeout: Duration::from_millis(100), ..LIMITS };
            let all = |_: &_, _, _: &_| ControlFlow::Continue(());
            let ran = run(&|_| scripted(&script), limits, &AtomicBool::new(false), &all, &|_, _| {}).unwrap();
            let status = |finished: &Finished| match &finished.outcome {
                Outcome::Died { .. } => "died",
                Outcome::NotRun { .. } => "not run",
                Outcome::Passed => "passed",
                other => panic!("{other:?}"),
            };
            let statuses = ran.finished.iter().map(status).collect();
            (ran, statuses)
        };
        let (ran, statuses) = judge(1, 5);
        assert_eq!(statuses, ["died", "died", "died", "not run", "not run", "passed"]);
        assert_eq!((ran.wanted, ran.interrupted), (6, false));
        let reason = "3 cases of kernel 0 timed out".to_string();
        assert_eq!(ran.finished[3].outcome, Outcome::NotRun { reason });
        let (ran, statuses) = judge(KERNELS_OF_A_RUN + 1, 1);
        let expected = [["died"; KERNELS_OF_A_RUN].as_slice(), &["not run"; 2]].concat();
        assert_eq!(statuses, expected);
        let reason = "cases of 10 different kernels timed out, which ended the run".to_string();
        assert_eq!(ran.finished[KERNELS_OF_A_RUN + 1].outcome, Outcome::NotRun { reason });
    }

    #[test]
    fn a_run_may_end_at_a_failed_case() {
        let limits = LIMITS;
        let stop = AtomicBool::new(false);
        let until = |id: &'static str| {
            let done = move |judged: &Judged, progress: Progress, finished: &Finished| {
                assert_eq!((judged.plugin.as_str(), progress.all), ("p", 3));
                if finished.case.id == id { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let ran = run(&worker, limits, &stop, &done, &|_, _| {}).unwrap();
            (ran.finished.len(), ran.wanted, ran.interrupted)
        };
        assert_eq!(until("b"), (2, 3, true));
        assert_eq!(until("c"), (3, 3, false), "nothing was left");
    }
}
