//! The worker: loads the backend, lists the cases, and runs the requested ones.

use super::paths;
use super::protocol::{CaseName, Judged, Kernels, MARK, Said};
use super::selection::Selection;
use super::tested_kernel::tested_kernel;
use crate::arithmetic;
use crate::call::last;
use crate::case::Case;
use crate::families::{self, Context, Op, Scope};
use crate::inputs;
use crate::memory::Arrangement;
use crate::oracle::Value;
use crate::outcome::{AND_WRONG, Failure, Outcome};
use crate::process::{self, Settings};
use crate::recorder;
use crate::target::{Target, TargetError};
use keyway::dispatcher::loader::precheck::Stamp;
use keyway::dispatcher::registry::KernelEntry;
use keyway::dispatcher::{device, parallel};
use keyway::{DType, Device, Layout};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The job of a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// A device or a plugin; not needed with a library.
    pub name: Option<String>,
    /// A clause with the plugin to install for that name, if the program knows one.
    pub would_serve: Option<String>,
    /// A library.
    #[serde(with = "paths::one")]
    pub library: Option<PathBuf>,
    /// Further paths to search for backends.
    #[serde(with = "paths")]
    pub backends: Vec<PathBuf>,
    /// The selected cases.
    pub selection: Selection,
    /// Whether to list the cases.
    pub listed: bool,
}

/// The number of cases between two checks for processes left by kernels; a check takes as long as a small case.
const CHILDREN: usize = 16;
/// Maximum number of threads of a case.
const THREADS: usize = 3;

/// Runs cases until the input ends. The process should end then.
///
/// # Errors
/// An output that cannot be written.
pub fn serve(job: &Job, input: impl BufRead, mut output: impl Write) -> std::io::Result<()> {
    let mut say = |said: &Said| -> std::io::Result<()> {
        writeln!(output, "{MARK}{}", serde_json::to_string(said)?)?;
        output.flush()
    };
    end_with_parent();
    let target = match start(job) {
        Ok(target) => target,
        Err((reason, usage)) => return say(&Said::Refused { reason, usage }),
    };
    let _recording = match recorder::start() {
        Ok(guard) => guard,
        Err(error) => return say(&Said::Refused { reason: error.to_string(), usage: false }),
    };
    let cases = list(&target, &job.selection);
    if let (true, Some(got)) = (cases.is_empty(), job.selection.cases.first()) {
        let reason = super::SelectionError::Case { got: got.clone() }.to_string();
        return say(&Said::Refused { reason, usage: true });
    }
    let names = if job.listed { cases.iter().map(|case| name(&target, case)).collect() } else { Vec::new() };
    say(&Said::Ready { judged: judged(&target), cases: names })?;
    let (own, mut seen) = (std::process::id(), HashSet::new());
    let numbered: HashMap<*const KernelEntry, u32> =
        in_order(&target).into_iter().map(std::ptr::from_ref).zip(0..).collect();
    let mut known = HashSet::new();
    let by_id: HashMap<String, &Case> = cases.iter().map(|c| (c.to_string(), c)).collect();
    for (nth, line) in input.lines().enumerate() {
        let id = line?;
        let Some(case) = by_id.get(&id) else { continue };
        let begun = Instant::now();
        let there = case.device.map(|device| target.at(device));
        let judged = there.as_ref().unwrap_or(&target);
        let context = Context::new(judged, case, job.selection.seed, job.selection.draws);
        // The system call takes longer than a small case: it is made only for the first case of each op and dtype.
        let first = seen.insert((case.name(), case.dtype)).then(Settings::now);
        let Verdict { mut outcome, mut spoiled, panicked, served } = judge(&context);
        if std::process::id() != own {
            // A kernel has forked the worker, and this is the copy: it would answer in place of the worker.
            std::process::abort();
        }
        if (first.is_some() || nth % CHILDREN == 0)
            && outcome == Outcome::Passed
            && !process::children().is_empty()
        {
            let what = "a kernel forked the process, now or some cases ago";
            outcome = Outcome::Failed(Failure::new(what, "one process", "a copy of it"));
            spoiled = true;
        }
        if let (Some(before), Outcome::Passed) = (first, &outcome)
            && let Some(how) = before.changed(&Settings::now())
        {
            let what = "a kernel changed what belongs to the whole process";
            outcome = Outcome::Failed(Failure::new(what, "what it found", how));
        }
        let micros = begun.elapsed().as_micros() as u64;
        let call = outcome.is_failure().then(|| last::words().or_else(|| describe(&context))).flatten();
        let judged_by = context.judged_by();
        let shrunk = context.shrunk();
        let reached =
            served.into_iter().filter_map(|kernel| numbered.get(&std::ptr::from_ref(kernel)).copied());
        let reached = reached.filter(|&kernel| known.insert(kernel)).collect();
        say(&Said::Done { id, outcome, call, judged_by, shrunk, reached, spoiled, panicked, micros })?;
    }
    Ok(())
}

/// The verdict on a case.
struct Verdict {
    outcome: Outcome,
    /// Whether the plugin cannot be tested further.
    spoiled: bool,
    /// Whether it panicked.
    panicked: bool,
    /// The kernels that ran a call.
    served: Vec<&'static KernelEntry>,
}

/// Runs a case. A case that passes without the tested library counts for others.
fn judge(context: &Context<'_>) -> Verdict {
    drop(recorder::take());
    last::forget();
    let outcome = families::run(context);
    // An error of enqueued work is returned by the next synchronisation, which must not be another case's.
    let outcome = match (outcome, device::synchronize(context.target.device)) {
        (Outcome::Passed, Err(error)) => {
            Outcome::Failed(Failure::new("work that was queued", "to be done", error.to_string()))
        }
        (outcome, _) => outcome,
    };
    let seen = recorder::take();
    let changed = arithmetic::changed();
    let outcome = match (outcome, changed) {
        (Outcome::Passed, Some(how)) => {
            let what = "a kernel left the thread's floating-point mode changed";
            Outcome::Failed(Failure::new(what, "the mode that it found", how))
        }
        (outcome, _) => outcome,
    };
    // Functions of devices and layouts are no kernels, and so not recorded.
    let is_panic = |failure: &Failure| failure.got.contains("panicked");
    let panicked = seen.panicked || matches!(&outcome, Outcome::Failed(failure) if is_panic(failure));
    let spoiled = panicked || changed.is_some();
    let outcome = match outcome {
        Outcome::Passed if seen.panicked => {
            Outcome::Failed(Failure::new("a kernel panicked", "a result or an error", "a panic"))
        }
        Outcome::Passed if !families::serves(context, &seen) => Outcome::ByOthers { by: seen.by() },
        // A wrong result that the tested library had no part in is not its own; it has no kernel of the op.
        Outcome::Failed(failure)
            if !families::serves(context, &seen)
                && seen.has_kernel()
                && context.case.is_about_op()
                && !context.target.registers(context.case.name()) =>
        {
            Outcome::ByOthers { by: format!("{}{AND_WRONG}{}", seen.by(), failure.what) }
        }
        outcome => outcome,
    };
    Verdict { outcome, spoiled, panicked, served: seen.served() }
}

fn start(job: &Job) -> Result<Target, (String, bool)> {
    // The pool is created with the maximum number of threads of any case; a case without a request has one.
    parallel::set_num_threads(THREADS);
    parallel::parallel_for(THREADS, 1, &|_| {});
    parallel::set_num_threads(1);
    let mut paths: Vec<PathBuf> = job.library.iter().cloned().collect();
    paths.extend(job.backends.iter().cloned());
    keyway::runtime::start_with(&paths).map_err(|e| (e.to_string(), false))?;
    job.selection.check().map_err(|e| (e.to_string(), true))?;
    let found = match (&job.library, &job.name) {
        (Some(library), _) => Target::of_library(library),
        (None, Some(name)) => Target::named(name),
        (None, None) => Target::named("cpu"),
    };
    let found = found.and_then(|target| target.check_device().map(|()| target));
    let target = found.map_err(|error| {
        let usage = matches!(error, TargetError::Unknown { .. });
        let would = job.would_serve.as_ref().filter(|_| usage);
        (would.map_or_else(|| error.to_string(), |would| format!("{error}; {would}")), usage)
    })?;
    // Some of them are the plugin's, which is loaded by now.
    let foreign = keyway::ops::by_name::foreign().map_err(|e| (e.to_string(), false))?;
    job.selection.check_ops(&foreign).map_err(|e| (e.to_string(), true))?;
    // It is tested, regardless of other installed and preferred plugins.
    keyway::backend::prefer_backends(&[target.plugin]).map_err(|e| (e.to_string(), false))?;
    Ok(target)
}

fn list(target: &Target, selection: &Selection) -> Vec<Case> {
    let ops: Vec<Op> = keyway::ops::all()
        .filter(|def| selection.wants_op(def.name()) && target.answers_for(def))
        .map(|def| Op { def, samples: (def.samples)() })
        .collect();
    let foreign = target.ops().into_iter().filter(|op| selection.wants_op(op.name));
    let foreign: Vec<families::Foreign> = foreign.map(families::Foreign::new).collect();
    let scope = Scope {
        target,
        ops: &ops,
        foreign: &foreign,
        quick: selection.quick,
        huge: selection.huge,
        profile: selection.profile.as_deref(),
        draws: families::Draws { seed: selection.draws, thorough: selection.thorough, ids: &selection.cases },
    };
    let mut cases = families::list_all(&scope, |family| selection.wants_family(family));
    cases.retain(|case| selection.wants(case));
    cases
}

fn judged(target: &Target) -> Judged {
    let rejected = keyway::runtime::backends().map_or(&[][..], |b| &b.rejected);
    let properties = keyway::dispatcher::device::properties(target.device).ok();
    let further = target.further();
    let devices: Vec<String> =
        [target].into_iter().chain(&further).map(|target| target.device.to_string()).collect();
    Judged {
        plugin: target.plugin.to_string(),
        version: target.version.clone(),
        library: target.library.clone(),
        stamp: Stamp::of_file(&target.library).ok(),
        registers: registered(target),
        kernels: kernels(target),
        device: devices.join(", "),
        asynchronous: properties.as_ref().is_some_and(|p| p.asynchronous),
        device_name: properties.map(|p| p.name).filter(|_| target.device != keyway::Device::CPU),
        rejected: rejected.iter().map(ToString::to_string).collect(),
    }
}

/// The target's kernels by device and layout.
fn in_order(target: &Target) -> Vec<&'static KernelEntry> {
    let mut kernels = target.kernels.clone();
    kernels.sort_by_key(|k| (Device { kind: k.device, index: 0 }.name(), k.layout.name()));
    kernels
}

/// The number of kernels of the target by device and layout, in the order of [`in_order`].
fn kernels(target: &Target) -> Vec<Kernels> {
    let mut all: Vec<Kernels> = Vec::new();
    for kernel in in_order(target) {
        let (device, layout) = (Device { kind: kernel.device, index: 0 }.name(), kernel.layout.name());
        match all.last_mut().filter(|last| last.device == device && last.layout == layout) {
            Some(last) => last.registered += 1,
            None => all.push(Kernels {
                device: device.to_string(),
                layout: layout.to_string(),
                registered: 1,
                reached: 0,
            }),
        }
    }
    all
}

/// The ops and dtypes of the target's kernels of strided tensors.
fn registered(target: &Target) -> Vec<(String, String)> {
    let strided = target.kernels.iter().filter(|k| k.layout == Layout::STRIDED);
    let named =
        strided.filter_map(|k| Some((k.op.to_string(), DType::from_code(k.dtype)?.name().to_string())));
    named.collect::<BTreeSet<_>>().into_iter().collect()
}

fn name(target: &Target, case: &Case) -> CaseName {
    CaseName {
        id: case.to_string(),
        family: case.family.to_string(),
        op: case.name().to_string(),
        dtype: case.dtype.map_or(String::new(), |d| d.name().to_string()),
        sample: case.sample,
        kernel: tested_kernel(case, case.device.unwrap_or(target.device)),
    }
}

/// The call of a case's sample as text, for a case that made no call.
fn describe(context: &Context<'_>) -> Option<String> {
    let args = if context.case.family == "errors" {
        (context.case.def?.errors)().into_iter().nth(context.case.sample)?.args
    } else {
        context.sample().ok()?.args
    };
    let inputs = inputs::of_sample(&args, context.dtype(), context.sample_seed());
    let wanted = Arrangement::from_name(&context.case.variant).unwrap_or(Arrangement::Contiguous);
    let tensor = |a: &crate::array::Array| {
        let arrangement = if wanted.suits(&a.sizes) { wanted } else { Arrangement::Contiguous };
        format!("{} {:?} strides {:?}", a.dtype, a.sizes, arrangement.strides(&a.sizes))
    };
    let texts: Vec<String> = inputs
        .0
        .iter()
        .map(|value| match value {
            Value::None => "none".to_string(),
            Value::Array(a) => tensor(a),
            Value::Arrays(list) => format!("[{}]", list.iter().map(tensor).collect::<Vec<_>>().join(", ")),
            Value::Int(v) => v.to_string(),
            Value::Float(v) => format!("{v:?}"),
            Value::Bool(v) => v.to_string(),
            Value::Ints(v) => format!("{v:?}"),
            Value::Floats(v) => format!("{v:?}"),
            Value::Str(v) => format!("\"{v}\""),
            Value::DType(v) => v.to_string(),
        })
        .collect();
    Some(format!("{}({})", context.case.name(), texts.join(", ")))
}

/// Ends this process when its parent has ended, also while a kernel hangs.
fn end_with_parent() {
    #[cfg(unix)]
    {
        let parent = std::os::unix::process::parent_id();
        std::thread::spawn(move || {
            while std::os::unix::process::parent_id() == parent {
                std::thread::sleep(Duration::from_millis(300));
            }
            std::process::exit(3);
        });
    }
}
