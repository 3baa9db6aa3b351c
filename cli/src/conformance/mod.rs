//! `keyway conformance`: judges a backend, case by case, in worker processes.

mod progress;
mod summary;

use crate::failure::Failure;
use crate::files::{self, Outputs};
use crate::installed::{self, Choice};
use crate::screen::{self, Screen};
use keyway::dispatcher::loader::precheck::Stamp;
use keyway::dispatcher::loader::trust::sha256_file;
use keyway_conformance::certificate::Certificate;
use keyway_conformance::families;
use keyway_conformance::known::KnownFailures;
use keyway_conformance::report::Report;
use keyway_conformance::runner::{self, Finished, Judged, Limits, Progress, RunError, Selection, worker};
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The options of `keyway conformance`.
#[derive(clap::Args)]
pub struct Options {
    /// A device, such as `cpu`, or the name of a plugin.
    #[arg(default_value = "cpu")]
    backend: String,
    /// Judge this library, installed or not.
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Only ops whose name matches; `*` and `?` stand for any characters. May be repeated.
    #[arg(long, value_name = "GLOB")]
    op: Vec<String>,
    /// Only this family of cases; may be repeated.
    #[arg(long, value_name = "NAME")]
    family: Vec<String>,
    /// Leave out this family of cases; may be repeated.
    #[arg(long, value_name = "NAME")]
    without_family: Vec<String>,
    /// Only this dtype; may be repeated.
    #[arg(long, value_name = "NAME")]
    dtype: Vec<String>,
    /// Only this case, by its id or a pattern of ids; may be repeated.
    #[arg(long, value_name = "ID")]
    case: Vec<String>,
    /// Judge the ops of a tier (load, infer, train, train-images), all of which the backend must serve.
    #[arg(long, value_name = "TIER")]
    profile: Option<String>,
    /// A part of the cases: some samples, dtypes and strides of each op.
    #[arg(long)]
    quick: bool,
    /// A random part of the cases, of this share, such as 0.1; the seed of drawn calls draws it.
    #[arg(long, value_parser = share, allow_negative_numbers = true, value_name = "SHARE")]
    sample: Option<u32>,
    /// Also cases of more than 2^31 elements, which take gigabytes and minutes.
    #[arg(long)]
    huge: bool,
    /// Worker processes; if not given, as many as there are cores, and at most 2 on a device that works behind the host, such as a GPU.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256), allow_negative_numbers = true, value_name = "N")]
    jobs: Option<u16>,
    /// Draw the calls of the family `drawn` from this, rather than from chance, and mix it into the values of the samples, which 0
    /// leaves as they are.
    #[arg(long, value_parser = crate::numbers::seed, allow_negative_numbers = true, value_name = "N")]
    seed: Option<u64>,
    /// Draw calls for an hour on two cores, rather than for 20 s.
    #[arg(long)]
    thorough: bool,
    /// Draw calls for this time, of all workers together, in seconds; 0 draws none.
    #[arg(long, value_parser = seconds_or_none, allow_negative_numbers = true, value_name = "S")]
    drawing: Option<f64>,
    /// The most processor time that a case may take, in seconds.
    #[arg(long, default_value_t = 20.0, value_parser = seconds, allow_negative_numbers = true, value_name = "S")]
    timeout: f64,
    /// End the run at the first case that is not as expected. Its report is that of an interrupted run.
    #[arg(long)]
    fail_fast: bool,
    /// The list of known failures; that beside the library if not given.
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// Write the report here, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the report here, as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the report here, as a page for a browser.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Judge nothing; list the families of cases and what each checks.
    #[arg(long)]
    list: bool,
    /// Judge nothing; write the samples of the ops that `--op` names and the oracle's results into this folder, for other libraries to check.
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
}

const JSON: &str = "the report";
const JUNIT: &str = "the JUnit report";
const HTML: &str = "the page";

/// Limit on a worker's resident memory beyond the data that it retains between cases.
const MEMORY: u64 = 1 << 30;
/// Default number of workers for an asynchronous device. On one GPU, 2 workers judged 154,000 cases in 100 s, and 16 workers
/// 118,000 in 120 s; some of the 16 waited for more than the 20 s of a case.
const TURNS: usize = 2;
/// Time limit of drawn calls, summed over all workers: 20 s on two cores, an hour with `--thorough`, and less where a part of
/// the cases is enough.
const DRAWING: Duration = Duration::from_secs(40);
const DRAWING_THOROUGH: Duration = Duration::from_secs(2 * 3600);
const DRAWING_QUICK: Duration = Duration::from_secs(20);
/// The memory limit for cases of more than 2^31 elements, which run one at a time.
const HUGE_MEMORY: u64 = 16 << 30;

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds < 1e6 => Ok(seconds),
        _ => Err("expected a number of seconds above 0, such as 20".to_string()),
    }
}

/// A share above 0 and at most 1, in millionths.
fn share(text: &str) -> Result<u32, String> {
    match text.parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(((share * f64::from(runner::WHOLE)) as u32).max(1)),
        _ => Err("expected a share above 0 and at most 1, such as 0.1".to_string()),
    }
}

fn seconds_or_none(text: &str) -> Result<f64, String> {
    if text.parse() == Ok(0.0) { Ok(0.0) } else { seconds(text) }
}

impl Options {
    fn selection(&self) -> Selection {
        Selection {
            draws: self.seed.unwrap_or_else(by_chance),
            chosen: self.seed.is_some(),
            thorough: self.thorough,
            ops: self.op.clone(),
            families: self.family.clone(),
            without: self.without_family.clone(),
            dtypes: self.dtype.clone(),
            cases: self.case.clone(),
            quick: self.quick,
            huge: self.huge,
            sample: self.sample.unwrap_or(0),
            profile: self.profile.clone(),
            seed: self.seed.unwrap_or(0),
        }
    }

    /// The command-line arguments that test the same backend with the same values, and draw the same calls if `draws` is
    /// given.
    fn target(&self, choice: &Choice, draws: Option<u64>) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["conformance".into()];
        let mut option = |name: &str, value: &dyn AsRef<std::ffi::OsStr>| {
            words.push(name.into());
            words.push(value.as_ref().to_os_string());
        };
        choice.backends.iter().for_each(|path| option("--backends", path));
        self.library.iter().for_each(|path| option("--library", path));
        if let Some(profile) = &self.profile {
            option("--profile", profile);
        }
        if let Some(seed) = self.seed.or(draws) {
            option("--seed", &seed.to_string());
        }
        if self.huge {
            words.push("--huge".into());
        }
        if self.library.is_none() {
            words.push(self.backend.clone().into());
        }
        words
    }

    fn job(&self, choice: &Choice, selection: &Selection, listed: bool) -> worker::Job {
        worker::Job {
            name: Some(self.backend.clone()),
            would_serve: crate::known::would_serve(&self.backend),
            library: self.library.clone(),
            backends: choice.backends.clone(),
            selection: selection.clone(),
            listed,
        }
    }

    fn jobs(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
        self.jobs.map_or_else(cores, usize::from)
    }
}

/// Runs the suite.
///
/// # Errors
/// Wrong usage, a backend that cannot be loaded, a case that is not as expected, an interrupt, a report that
/// cannot be written.
pub fn run(options: &Options, choice: &Choice, screen: &mut Screen) -> Result<(), Failure> {
    if options.list {
        let mut table = screen::table(&["FAMILY", "WHAT IT CHECKS"], &[]);
        for family in families::ALL {
            table.add_row([family.name, family.about]);
        }
        screen.table(&table);
        return Ok(());
    }
    if let Some(folder) = &options.export {
        let selection = options.selection();
        selection.check_ops(&[]).map_err(|e| Failure::Usage(e.to_string()))?;
        let (ops, lines) = keyway_conformance::export::export(folder, |op| selection.wants_op(op))
            .map_err(|e| Failure::write("the samples", folder, e))?;
        screen.line(format!("{ops} ops, {lines} samples in {}", folder.display()));
        return Ok(());
    }
    let outputs = Outputs::new([(JSON, &options.json), (JUNIT, &options.junit), (HTML, &options.html)]);
    outputs.check()?;
    let selection = options.selection();
    selection.check().map_err(|e| Failure::Usage(e.to_string()))?;
    if let Some(library) = options.library.as_deref().filter(|path| !path.exists()) {
        return Err(Failure::Usage(format!(
            "--library {}: there is no such file; name the built library, such as {}",
            library.display(),
            crate::known::library("cpu"),
        )));
    }
    if let Some(library) = options.library.as_deref().filter(|path| path.is_dir()) {
        return Err(Failure::Usage(format!(
            "--library {}: expected a library, got a folder; name the library in it, such as {}",
            library.display(),
            library.join(crate::known::library("cpu")).display(),
        )));
    }
    let given = options.known.as_deref().map(KnownFailures::read).transpose();
    let given = given.map_err(|e| Failure::Usage(e.to_string()))?;

    let report = judge(options, choice, &selection, given)?;
    summary::print(&report, screen);
    let written = outputs.write(|what, path| {
        let text = match what {
            JSON => report.json(),
            JUNIT => report.junit(),
            _ => report.html(),
        };
        files::text(path, &text)
    });
    certify(&report, screen);
    let mut failures: Vec<Failure> = files::report_written(written, screen).err().into_iter().collect();
    let ended_by_case = options.fail_fast && report.bad().next().is_some();
    if report.interrupted && ended_by_case {
        let (done, wanted) = (report.cases.len(), report.wanted);
        screen.line(format!("ended at a case that is not as expected, after {done} of {wanted} cases"));
    }
    if report.interrupted && !ended_by_case {
        failures.push(Failure::Interrupted { done: report.cases.len(), of: report.wanted });
    } else if report.cases.is_empty() {
        failures.push(Failure::Usage("no case is left: narrow the run less".to_string()));
    } else if report.says_nothing() {
        failures.push(Failure::NothingJudged { plugin: report.plugin.clone(), of: report.cases.len() });
    } else if !report.is_green() {
        let (bad, of) = (report.bad().count() + report.unused_known.len(), report.cases.len());
        failures.push(Failure::NotAsExpected { bad, of, plugin: report.plugin.clone() });
    }
    Failure::all(failures)
}

fn judge(
    options: &Options,
    choice: &Choice,
    selection: &Selection,
    given: Option<KnownFailures>,
) -> Result<Report, Failure> {
    let program = std::env::current_exe()
        .map_err(|e| Failure::Usage(format!("cannot find this program to start workers with: {e}")))?;
    let command = |listed| runner::neutral(&program, &options.job(choice, selection, listed));
    let ordinary = Duration::from_secs_f64(options.timeout);
    let drawing = match (options.drawing, options.thorough, options.quick) {
        (Some(seconds), ..) => Duration::from_secs_f64(seconds),
        (None, true, _) => DRAWING_THOROUGH,
        (None, false, true) => DRAWING_QUICK,
        (None, false, false) => DRAWING,
    };
    let limits = if options.huge {
        Limits { jobs: 1, turns: 1, timeout: ordinary * 10, drawing, memory: HUGE_MEMORY }
    } else {
        let turns = options.jobs.map_or(TURNS, usize::from);
        Limits { jobs: options.jobs(), turns, timeout: ordinary, drawing, memory: MEMORY }
    };
    // If the library is given by its file, a list that cannot be read is reported before any case is run.
    let given = match (given, &options.library) {
        (None, Some(library)) => Some(beside(library)?),
        (given, _) => given,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    if let Err(error) = ctrlc::set_handler(move || asked.store(true, Ordering::Relaxed)) {
        screen::warning(&format!("an interrupt will not leave a report: {error}"));
    }
    let progress = progress::Progress::new();
    // For an installed library the list is read once a worker has reported its path. A list that cannot be read is reported
    // afterwards.
    let known = OnceLock::new();
    let done = |judged: &Judged, at: Progress, finished: &Finished| {
        progress.step(at, finished);
        if !options.fail_fast || !finished.outcome.is_failure() {
            return ControlFlow::Continue(());
        }
        let known = given
            .as_ref()
            .unwrap_or_else(|| known.get_or_init(|| beside(&judged.library).unwrap_or_default()));
        match known.reason(&finished.case.id) {
            Some(_) => ControlFlow::Continue(()),
            None => ControlFlow::Break(()),
        }
    };
    let running = |what: &str, time: Duration| progress.running(what, time);
    let ran = runner::run(&command, limits, &stop, &done, &running);
    progress.finish();
    let mut ran = ran.map_err(|error| match error {
        _ if stop.load(Ordering::Relaxed) => Failure::Interrupted { done: 0, of: 0 },
        RunError::Usage(text) => Failure::Usage(text),
        RunError::Backend(text) => Failure::NoBackend(text),
        other => Failure::NoBackend(other.to_string()),
    })?;
    ran.judged.rejected.iter().for_each(screen::warning);
    ran.judged.library = on_disk(options, choice, ran.judged.library);
    let known = match given {
        Some(known) => known,
        None => beside(&ran.judged.library)?,
    };
    runner::again(&command, limits, &stop, &mut ran, &|id| known.reason(id).is_none(), &running);
    let sha256 = sha256_file(&ran.judged.library).unwrap_or_default();
    if ran.changed || Stamp::of_file(&ran.judged.library).ok() != ran.judged.stamp {
        return Err(Failure::NoBackend(format!(
            "{} was changed while it was judged, so the results cannot be attributed to one content; run this again when it is \
             left alone",
            ran.judged.library.display()
        )));
    }
    let again = |draws| {
        let mut words = vec!["keyway".to_string()];
        words.extend(options.target(choice, draws).iter().map(|word| quoted(word)));
        words.join(" ")
    };
    let (usual, drawn) = (again(None), again(Some(selection.draws)));
    let thorough = if options.thorough { " --thorough" } else { "" };
    Ok(Report::new(ran, selection, sha256, &known, |id| match id {
        None => format!("{drawn} --family {}{thorough}", families::DRAWN),
        Some(id) => {
            let command = if id.split('/').next() == Some(families::DRAWN) { &drawn } else { &usual };
            format!("{command} --case {}", quoted(id.as_ref()))
        }
    }))
}

/// A seed drawn by chance.
fn by_chance() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The keys of a hash map are random; a short seed can be typed.
    u64::from(std::collections::hash_map::RandomState::new().build_hasher().finish() as u32)
}

/// The list of known failures next to a library; empty if it does not exist.
fn beside(library: &Path) -> Result<KnownFailures, Failure> {
    let path = KnownFailures::beside(library);
    if !path.exists() {
        return Ok(KnownFailures::default());
    }
    KnownFailures::read(&path).map_err(|e| Failure::Usage(e.to_string()))
}

/// The path of the tested library on disk. Workers report it as text, in which bytes that are not UTF-8 are lost.
fn on_disk(options: &Options, choice: &Choice, reported: PathBuf) -> PathBuf {
    if !reported.to_string_lossy().contains(char::REPLACEMENT_CHARACTER) {
        return reported;
    }
    let same = |path: &PathBuf| path.to_string_lossy() == reported.to_string_lossy();
    let given = options.library.as_deref().and_then(|path| path.canonicalize().ok());
    let found = || installed::discover(choice).candidates.into_iter().map(|c| c.path).find(same);
    given.filter(same).or_else(found).unwrap_or(reported)
}

/// A word quoted for a shell.
fn quoted(word: &OsStr) -> String {
    let Some(word) = word.to_str() else {
        // Every shell that has `$'...'` reads `\xff` as a byte.
        let byte = |byte: &u8| match byte {
            b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
            b' '..=b'~' => char::from(*byte).to_string(),
            _ => format!("\\x{byte:02x}"),
        };
        return format!("$'{}'", word.as_bytes().iter().map(byte).collect::<String>());
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Writes the certificate beside the library, if the run qualifies for one.
fn certify(report: &Report, screen: &mut Screen) {
    if report.selection.chosen {
        let what = match report.selection.seed {
            0 => "calls that seed 0 draws".to_string(),
            seed => format!("values of seed {seed}"),
        };
        screen.line(format!(
            "no certificate: this run is on the {what}, and only one without `--seed` leaves one"
        ));
    }
    let Some(certificate) = Certificate::of(report) else { return };
    if let Err(error) = certificate.record() {
        screen::warning(&format!(
            "this machine's verdict is not recorded, and the certificate a claim: {error}"
        ));
    }
    match certificate.store(&report.library) {
        Ok(Some(path)) if report.is_green() => {
            screen.line(format!("wrote the certificate to {}", path.display()));
        }
        Ok(Some(path)) => screen.line(format!("wrote the record of this failed run to {}", path.display())),
        Ok(None) => {}
        Err(error) => screen::warning(&format!(
            "no certificate: {} cannot be written: {error}",
            Certificate::beside(&report.library).display()
        )),
    }
}
