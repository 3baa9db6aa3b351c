//! What a run came to: rows, sums, and the forms in which they are written.

mod counts;
mod coverage;
mod html;
mod junit;

pub use counts::Counts;
pub use coverage::{Coverage, Draws};

use crate::families::DRAWN;
use crate::known::KnownFailures;
use crate::outcome::{Failure, Outcome};
use crate::runner::{Finished, Ran, Selection};
use crate::suite::SUITE_VERSION;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Families of cases that are about no op.
pub const NO_OPS: [&str; 2] = ["device", "layout"];

/// How a case is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As expected.
    Passed,
    /// As expected, but nothing of the judged library took part: it counts neither for nor against it.
    ByOthers,
    /// Not as expected.
    Failed,
    /// The worker died.
    Died,
    /// It fails, as the list of known failures says.
    KnownFailure,
    /// It is in the list of known failures, but it passed.
    UnexpectedPass,
    /// The backend does not claim it, and says so.
    Unsupported,
    /// It could not be judged.
    Skipped,
}

impl Status {
    /// Whether the run is a failure because of it.
    pub fn is_bad(self) -> bool {
        matches!(self, Status::Failed | Status::Died | Status::UnexpectedPass)
    }

    /// Whether the case says something of the judged library: it had a part in it, and it could be judged.
    pub fn is_judged(self) -> bool {
        !matches!(self, Status::ByOthers | Status::Unsupported | Status::Skipped)
    }
}

/// One case in a report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The case's id.
    pub id: String,
    /// Its family.
    pub family: String,
    /// The op, or what else it is about.
    pub op: String,
    /// The dtype under test; empty if there is none.
    pub dtype: String,
    /// How it is counted.
    pub status: Status,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// What its results were judged by, where that is not the oracle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged_by: Option<String>,
    /// How the worker died, why the case was skipped or is unsupported, why it is known to fail, or that it passed alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The call in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The command that runs this case alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerun: Option<String>,
    /// How long it took.
    pub micros: u64,
}

/// The machine of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system.
    pub os: String,
    /// Architecture.
    pub arch: String,
    /// The processor's name, where the system says it.
    pub cpu: String,
    /// Logical processors.
    pub cores: usize,
}

impl Machine {
    /// Whether results here say something of results there: the number of processors changes none.
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

/// Cases of a family and an op of which the judged library served none, although it registers kernels for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unserved {
    /// The op.
    pub op: String,
    /// The family.
    pub family: String,
    /// How many cases there are, of dtypes that the library registers kernels for.
    pub cases: usize,
}

/// Families of which a library that registers kernels of an op should serve a case of the op.
const SERVED: [&str; 2] = ["strided", "large"];

/// The profile that is about derivatives.
const TRAIN: &str = "train";

/// Families that judge derivatives.
const GRADIENTS: [&str; 4] = ["gradcheck", "gradgradcheck", "gradients", "corner_grads"];

/// A report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The version of the suite.
    pub suite: String,
    /// The version of Keyway.
    pub keyway: String,
    /// The plugin that was judged.
    pub plugin: String,
    /// Its version.
    pub plugin_version: String,
    /// Its library.
    #[serde(serialize_with = "keyway::dispatcher::lossy::path")]
    pub library: PathBuf,
    /// The library's SHA-256.
    pub sha256: String,
    /// The device.
    pub device: String,
    /// What the device is called, where it is not the CPU.
    pub device_name: Option<String>,
    /// The machine.
    pub machine: Machine,
    /// Which cases were wanted.
    pub selection: Selection,
    /// Whether the run was interrupted: what is missing was not run.
    pub interrupted: bool,
    /// How many cases there were to run.
    pub wanted: usize,
    /// The SHA-256 of the profile's name and of the ids of these cases.
    pub case_list: String,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// All cases by status.
    pub counts: Counts,
    /// The same for each family.
    pub families: BTreeMap<String, Counts>,
    /// The same for each op.
    pub by_op: BTreeMap<String, Counts>,
    /// What else than the oracle results were judged by, with the ops of which that holds.
    pub judged_by: BTreeMap<String, BTreeSet<String>>,
    /// Families of which the library served no case of an op that it registers.
    pub unserved: Vec<Unserved>,
    /// How much of the library was reached.
    pub coverage: Coverage,
    /// What the family `drawn` drew, if it had a case.
    pub draws: Option<Draws>,
    /// How many ops have cases.
    pub ops: usize,
    /// Entries of the list of known failures that match no case of this run.
    pub unused_known: Vec<String>,
    /// The cases.
    pub cases: Vec<Row>,
}

impl Report {
    /// A report of a run. `rerun` makes the command that runs one case alone, or with `None` that which draws the same.
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
        let drawn = cases.iter().filter(|row| row.family == DRAWN).count();
        let (seed, left_out) = (selection.draws, ran.left_out);
        let draws = (drawn > 0).then(|| Draws { seed, cases: drawn, left_out, again: rerun(None) });
        let about_ops = cases.iter().filter(|r| !NO_OPS.contains(&r.family.as_str()));
        let ops = about_ops.map(|r| r.op.as_str()).collect::<BTreeSet<&str>>().len();
        // Only a whole run can tell that an entry matches nothing.
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

    /// Whether every case is as expected and every one was run.
    pub fn is_green(&self) -> bool {
        !self.interrupted
            && !self.cases.is_empty()
            && self.cases.len() == self.wanted
            && self.unused_known.is_empty()
            && !self.says_nothing()
            && !self.cases.iter().any(|r| r.status.is_bad())
    }

    /// What there is to say of a run whose cases the judged library had no part in.
    pub fn nothing_served(&self) -> String {
        format!("no case was served by {}: this run says nothing of it", self.plugin)
    }

    /// Whether cases were run, and the judged library served none of them.
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
        format!("{text}{tier}{known}; {}", self.coverage.text())
    }

    /// What the run was narrowed to, as a sentence without its end; `None` for the whole suite on its usual values.
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

    /// How many cases the judged library itself served.
    pub fn served(&self) -> usize {
        self.cases.iter().filter(|row| row.status.is_judged()).count()
    }

    /// Who served the other cases: whoever served most of them first.
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

    /// Whether the profile is that for training, and no derivative was judged.
    pub fn lacks_gradients(&self) -> bool {
        let mut rows = self.cases.iter().filter(|row| GRADIENTS.contains(&row.family.as_str()));
        self.selection.profile.as_deref() == Some(TRAIN) && !rows.any(|row| row.status.is_judged())
    }

    /// The cases that are not as expected.
    pub fn bad(&self) -> impl Iterator<Item = &Row> {
        self.cases.iter().filter(|r| r.status.is_bad())
    }

    /// As JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// As JUnit XML: a suite for each family.
    pub fn junit(&self) -> String {
        junit::write(self)
    }

    /// As a page that stands alone.
    pub fn html(&self) -> String {
        html::write(self)
    }
}

/// Said of a wrong answer that a fresh process does not give.
const PASSED_ALONE: &str =
    "alone in a fresh process it passed: it depends on what ran before it in the same process, or on chance";

/// Stands between those who served a case for the judged library and what is wrong with it.
pub const AND_WRONG: &str = ", and not as expected: ";

/// Whether an id, or a pattern, is of drawn cases. They are others in each run, so that a pattern may match some that pass.
fn is_drawn(id: &str) -> bool {
    id.split('/').next() == Some(DRAWN)
}

/// See [`Report::unserved`].
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

/// See [`Report::case_list`]. An interrupted run has no list. Drawn cases are not in it: their seed says what they are.
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
    let bad = outcome.is_failure();
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
