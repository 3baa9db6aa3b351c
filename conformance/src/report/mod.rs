//! Report of a run: rows, totals, and output formats.

mod counts;
mod coverage;
mod html;
mod junit;
mod status;

pub use counts::Counts;
pub(crate) use counts::grouped;
pub use coverage::{Coverage, Draws};
pub use status::Status;

use crate::families::DRAWN;
use crate::known::KnownFailures;
use crate::outcome::{AND_WRONG, Failure, Outcome};
use crate::runner::{Finished, Ran, Selection};
use crate::suite::SUITE_VERSION;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Families of cases that are about no op.
pub const NO_OPS: [&str; 2] = ["device", "layout"];

/// One case in a report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The case's id.
    pub id: String,
    /// The family of the case.
    pub family: String,
    /// The op, or another subject.
    pub op: String,
    /// The dtype under test; empty if none.
    pub dtype: String,
    /// The status of the case.
    pub status: Status,
    /// The failure, if the case failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The reference of its results, if it is not the oracle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged_by: Option<String>,
    /// The reason why the worker died, why the case was skipped, not run or is unsupported, why it is known to fail, or
    /// that it passed when run separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The call as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The command that runs only this case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerun: Option<String>,
    /// Duration in microseconds.
    pub micros: u64,
}

/// The machine of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system.
    pub os: String,
    /// Architecture.
    pub arch: String,
    /// The processor's name, if the system reports it.
    pub cpu: String,
    /// Logical processors.
    pub cores: usize,
}

impl Machine {
    /// Whether results of both machines are comparable: the number of processors does not affect them.
    pub fn is_like(&self, other: &Machine) -> bool {
        (&self.os, &self.arch, &self.cpu) == (&other.os, &other.arch, &other.cpu)
    }

    /// This machine.
    pub fn this() -> Machine {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find(|l| l.starts_with("model name")).and_then(|l| l.split(':').nth(1));
        Machine {
            os: std::env::consts::OS.to_string(),
            arch: std::env::consts::ARCH.to_string(),
            cpu: model.map_or("unknown", str::trim).to_string(),
            cores: std::thread::available_parallelism().map_or(1, |n| n.get()),
        }
    }
}

/// A family and an op none of whose cases the tested library ran, although it registers kernels for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unserved {
    /// The op.
    pub op: String,
    /// The family.
    pub family: String,
    /// The number of cases of dtypes that the library registers kernels for.
    pub cases: usize,
}

/// Families in which a library with kernels of an op should run a case of the op.
const SERVED: [&str; 2] = ["strided", "large"];

/// The profile that is about derivatives.
const TRAIN: &str = "train";

/// Families that test derivatives.
const GRADIENTS: [&str; 4] = ["gradcheck", "gradgradcheck", "gradients", "corner_grads"];

/// A report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The version of the suite.
    pub suite: String,
    /// The version of Keyway.
    pub keyway: String,
    /// The tested plugin.
    pub plugin: String,
    /// The plugin's version.
    pub plugin_version: String,
    /// The plugin's library.
    #[serde(serialize_with = "keyway::dispatcher::lossy::path")]
    pub library: PathBuf,
    /// The library's SHA-256.
    pub sha256: String,
    /// The device.
    pub device: String,
    /// The name of the device, if it is not the CPU.
    pub device_name: Option<String>,
    /// The machine.
    pub machine: Machine,
    /// The selection of cases.
    pub selection: Selection,
    /// Whether the run was interrupted: missing cases were not run.
    pub interrupted: bool,
    /// The number of cases to run.
    pub wanted: usize,
    /// The SHA-256 of the profile's name and of the ids of these cases.
    pub case_list: String,
    /// Duration in seconds.
    pub seconds: f64,
    /// All cases by status.
    pub counts: Counts,
    /// The counts of each family.
    pub families: BTreeMap<String, Counts>,
    /// The counts of each op.
    pub by_op: BTreeMap<String, Counts>,
    /// References other than the oracle, each with the ops that it applies to.
    pub judged_by: BTreeMap<String, BTreeSet<String>>,
    /// Families in which the library ran no case of an op that it registers.
    pub unserved: Vec<Unserved>,
    /// Coverage of the library.
    pub coverage: Coverage,
    /// The draws of the family `drawn`, if it had a case.
    pub draws: Option<Draws>,
    /// The number of ops with cases.
    pub ops: usize,
    /// Entries of the list of known failures that match no case of this run.
    pub unused_known: Vec<String>,
    /// The cases.
    pub cases: Vec<Row>,
}

impl Report {
    /// Creates the report of a run. `rerun` returns the command that runs only one case, or with `None` the one that draws
    /// the same calls.
    pub fn new(
        ran: Ran,
        selection: &Selection,
        sha256: String,
        known: &KnownFailures,
        rerun: impl Fn(Option<&str>) -> String,
    ) -> Report {
        let case_list = case_list(selection, &ran);
        let cases: Vec<Row> = ran.finished.into_iter().map(|f| row(f, known, &rerun)).collect();
        let mut counts = Counts::default();
        let mut families: BTreeMap<String, Counts> = BTreeMap::new();
        let mut by_op: BTreeMap<String, Counts> = BTreeMap::new();
        let mut judged_by: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in &cases {
            counts.add(row.status);
            families.entry(row.family.clone()).or_default().add(row.status);
            if !NO_OPS.contains(&row.family.as_str()) {
                by_op.entry(row.op.clone()).or_default().add(row.status);
            }
            if let Some(by) = &row.judged_by {
                judged_by.entry(by.clone()).or_default().insert(row.op.clone());
            }
        }
        let unserved = unserved(&ran.judged.registers, &cases);
        let of = |status| counts.of(status);
        let judged = cases.iter().filter(|row| row.status.is_judged()).count();
        let coverage = Coverage {
            kernels: ran.judged.kernels,
            judged,
            refused: of(Status::Unsupported),
            known: of(Status::KnownFailure),
        };
        let drawn = cases.iter().filter(|row| row.family == DRAWN && row.status != Status::NotRun).count();
        let (seed, left_out) = (selection.draws, ran.left_out);
        let draws = (drawn > 0).then(|| Draws { seed, cases: drawn, left_out, again: rerun(None) });
        let about_ops = cases.iter().filter(|r| !NO_OPS.contains(&r.family.as_str()));
        let ops = about_ops.map(|r| r.op.as_str()).collect::<BTreeSet<&str>>().len();
        // Only a complete run can determine that an entry matches nothing.
        let unused = |k: &&crate::known::Known| {
            !is_drawn(&k.case) && !cases.iter().any(|r| crate::case::glob(&k.case, &r.id))
        };
        let unused_known = if selection.is_everything() && !ran.interrupted {
            known.known.iter().filter(unused).map(|k| k.case.clone()).collect()
        } else {
            Vec::new()
        };
        Report {
            suite: SUITE_VERSION.to_string(),
            keyway: env!("CARGO_PKG_VERSION").to_string(),
            plugin: ran.judged.plugin,
            plugin_version: ran.judged.version,
            library: ran.judged.library,
            sha256,
            device: ran.judged.device,
            device_name: ran.judged.device_name,
            machine: Machine::this(),
            selection: selection.clone(),
            interrupted: ran.interrupted,
            wanted: ran.wanted,
            case_list,
            seconds: ran.duration.as_secs_f64(),
            counts,
            families,
            by_op,
            judged_by,
            unserved,
            coverage,
            draws,
            ops,
            unused_known,
            cases,
        }
    }

    /// Whether every case was run and had the expected outcome.
    pub fn is_green(&self) -> bool {
        !self.interrupted
            && !self.cases.is_empty()
            && self.cases.len() == self.wanted
            && self.unused_known.is_empty()
            && !self.says_nothing()
            && !self.cases.iter().any(|r| r.status.is_bad())
    }

    /// The message for a run in which the tested library served no case.
    pub fn nothing_served(&self) -> String {
        format!("no case was served by {}: this run does not test it", self.plugin)
    }

    /// Whether cases were run, and the tested library ran none of them.
    pub fn says_nothing(&self) -> bool {
        !self.cases.is_empty() && self.served() == 0
    }

    /// The verdict on a whole run with its coverage, as a clause.
    pub fn verdict(&self) -> String {
        if self.interrupted {
            return format!("interrupted after {} of {} cases", self.cases.len(), self.wanted);
        }
        if self.says_nothing() {
            return self.nothing_served();
        }
        let text =
            if self.is_green() { "every case is as expected" } else { "not every case is as expected" };
        let tier = self.selection.profile.as_ref().map(|tier| format!(" of tier {tier}")).unwrap_or_default();
        let known = match self.coverage.known {
            0 => String::new(),
            1 => ", with 1 known failure".to_string(),
            known => format!(", with {known} known failures"),
        };
        let not_run = match self.counts.of(Status::NotRun) {
            0 => String::new(),
            1 => ", 1 case was not run after time-outs".to_string(),
            count => format!(", {count} cases were not run after time-outs"),
        };
        format!("{text}{tier}{known}{not_run}; {}", self.coverage.text())
    }

    /// The restriction of the run, as a sentence without its end; `None` for the complete suite with the default seed.
    pub fn narrowed(&self) -> Option<String> {
        let selection = &self.selection;
        let seed = match (selection.seed, selection.chosen) {
            (0, false) => None,
            (0, true) => Some(format!("on the calls that seed {} draws", selection.draws)),
            (seed, _) => Some(format!("on the values of seed {seed}")),
        };
        match (selection.narrowed(), seed) {
            (Some(to), seed) => {
                let seed = seed.map(|seed| format!(", {seed}")).unwrap_or_default();
                Some(format!("narrowed to {to}{seed}: not the whole suite"))
            }
            (None, seed) => seed,
        }
    }

    /// The number of cases that the tested library itself ran.
    pub fn served(&self) -> usize {
        self.cases.iter().filter(|row| row.status.is_judged() && row.status != Status::NotRun).count()
    }

    /// The plugins that ran the other cases, in descending order of the number of cases.
    pub fn others(&self) -> Vec<&str> {
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        for row in self.cases.iter().filter(|row| row.status == Status::ByOthers) {
            let by = row.reason.as_deref().unwrap_or_default();
            let names = by.split(AND_WRONG).next().unwrap_or_default();
            names
                .split(", ")
                .filter(|name| !name.is_empty())
                .for_each(|name| *count.entry(name).or_default() += 1);
        }
        let mut names: Vec<(&str, usize)> = count.into_iter().collect();
        names.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
        names.into_iter().map(|(name, _)| name).collect()
    }

    /// Whether the profile is the one for training, and no derivative was tested.
    pub fn lacks_gradients(&self) -> bool {
        let mut rows = self.cases.iter().filter(|row| GRADIENTS.contains(&row.family.as_str()));
        self.selection.profile.as_deref() == Some(TRAIN) && !rows.any(|row| row.status.is_judged())
    }

    /// The number of cases that were not run after time-outs, by reason.
    pub fn not_run(&self) -> BTreeMap<&str, usize> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for row in self.cases.iter().filter(|row| row.status == Status::NotRun) {
            *counts.entry(row.reason.as_deref().unwrap_or_default()).or_default() += 1;
        }
        counts
    }

    /// The cases that are not as expected.
    pub fn bad(&self) -> impl Iterator<Item = &Row> {
        self.cases.iter().filter(|r| r.status.is_bad())
    }

    /// The report as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// Note on a wrong result that a fresh process does not reproduce.
const PASSED_ALONE: &str =
    "alone in a fresh process it passed: it depends on what ran before it in the same process, or on chance";

/// Whether an id, or a pattern, is of drawn cases. They differ in each run, so that a pattern may match some that pass.
fn is_drawn(id: &str) -> bool {
    id.split('/').next() == Some(DRAWN)
}

/// Computes [`Report::unserved`].
fn unserved(registers: &[(String, String)], cases: &[Row]) -> Vec<Unserved> {
    let registers: BTreeSet<(&str, &str)> =
        registers.iter().map(|(op, dtype)| (op.as_str(), dtype.as_str())).collect();
    let mut counts: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
    for row in cases.iter().filter(|row| SERVED.contains(&row.family.as_str())) {
        if registers.contains(&(row.op.as_str(), row.dtype.as_str())) && row.status != Status::Skipped {
            let (all, served) = counts.entry((&row.op, &row.family)).or_default();
            *all += 1;
            *served += usize::from(row.status.is_judged());
        }
    }
    let none = counts.into_iter().filter(|(_, (_, served))| *served == 0);
    let row = |((op, family), (cases, _)): ((&str, &str), (usize, usize))| Unserved {
        op: op.to_string(),
        family: family.to_string(),
        cases,
    };
    none.map(row).collect()
}

/// Computes [`Report::case_list`]. An interrupted run has no list. Drawn cases are not in it: their seed identifies them.
fn case_list(selection: &Selection, ran: &Ran) -> String {
    let profile = selection.profile.as_deref().unwrap_or_default();
    let ids = ran.finished.iter().map(|finished| finished.case.id.as_str()).filter(|id| !is_drawn(id));
    let mut hasher = Sha256::new();
    for text in std::iter::once(profile).chain(ids) {
        hasher.update(text);
        hasher.update([0]);
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn row(finished: Finished, known: &KnownFailures, rerun: &impl Fn(Option<&str>) -> String) -> Row {
    let Finished { case, outcome, call, judged_by, shrunk, passed_alone, panicked, duration } = finished;
    let known = known.reason(&case.id);
    // A case that was not run has no result to reproduce; those that timed out have their commands.
    let bad = outcome.is_failure() && !matches!(outcome, Outcome::NotRun { .. });
    let mut failure = None;
    let (status, reason) = match (outcome, known) {
        (Outcome::Failed(why), Some(_)) if panicked => {
            failure = Some(why);
            (Status::Failed, Some("a panic, which no list can excuse".to_string()))
        }
        (Outcome::Failed(why), Some(reason)) => {
            failure = Some(why);
            (Status::KnownFailure, Some(reason.to_string()))
        }
        (Outcome::Failed(why), None) => {
            failure = Some(why);
            (Status::Failed, passed_alone.then(|| PASSED_ALONE.to_string()))
        }
        (Outcome::Died { how }, Some(_)) => (Status::Died, Some(format!("{how}, which no list can excuse"))),
        (Outcome::Died { how }, None) => (Status::Died, Some(how)),
        (Outcome::NotRun { reason }, _) => (Status::NotRun, Some(reason)),
        (Outcome::Passed, Some(reason)) if !is_drawn(&case.id) => {
            (Status::UnexpectedPass, Some(reason.to_string()))
        }
        (Outcome::Passed, _) => (Status::Passed, None),
        (Outcome::ByOthers { by }, _) => (Status::ByOthers, Some(by)),
        (Outcome::Unsupported { reason }, _) => (Status::Unsupported, Some(reason)),
        (Outcome::Skipped { reason }, _) => (Status::Skipped, Some(reason)),
    };
    let rerun =
        (bad || status == Status::UnexpectedPass).then(|| rerun(Some(shrunk.as_deref().unwrap_or(&case.id))));
    Row {
        rerun,
        id: case.id,
        family: case.family,
        op: case.op,
        dtype: case.dtype,
        status,
        failure,
        judged_by,
        reason,
        call,
        micros: duration.as_micros() as u64,
    }
}

#[cfg(test)]
mod tests;
