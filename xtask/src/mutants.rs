//! `cargo xtask mutants`: mutation tests of the conformance suite.
//!
//! The plugin `test-plugins/mutant` wraps the CPU backend and injects one fault at a time; the mutants of the layout, the
//! device and the ops of other test plugins inject theirs. The real command judges each plugin under each of its faults; a
//! fault is caught if a case fails under it. The control runs judge the same plugins without a fault and must be green, so that
//! a failed case is due to the fault.

use crate::build;
use crate::dist;
use crate::failure::{Failure, Result};
use crate::workspace::{self, Workspace};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The plugins with the faults; the first has those of kernels.
const MUTANTS: [&str; 7] = [
    "keyway-test-mutant",
    "keyway-test-coo",
    "keyway-test-csr",
    "keyway-test-device",
    "keyway-test-int8",
    "keyway-test-interposer",
    "keyway-test-ops",
];
/// The backends that it wraps. The first is the one that an option replaces.
const BACKENDS: [&str; 3] = ["keyway-backend-cpu", "keyway-backend-fft", "keyway-backend-linalg"];
/// Environment variables of the plugin: the fault, and the backend.
const FAULT: &str = "KEYWAY_FAULT";
const WRAPPED: &str = "KEYWAY_MUTANT_OF";
/// Prefix of each line of the plugin's list of faults.
const MARK: &str = "@keyway-mutant\t";
/// The families of which every case is run, since a quick run has few: for a fault of only these.
const WHOLE: [&str; 3] = ["drawn", "lengths", "scaled"];
/// The seed of drawn calls, so that a run can be repeated.
const SEED: &str = "0";
/// Limit on a case's processor time, in seconds: three times that of the longest case without optimisation.
const TIMEOUT: &str = "15";

/// The options of `cargo xtask mutants`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Only this fault; may be repeated.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Wrap this library, and do not build the CPU backend.
    #[arg(long, value_name = "FILE")]
    backend: Option<PathBuf>,
    /// Let the program in `dist/` judge, and wrap the CPU backend there: these are optimised.
    #[arg(long, conflicts_with = "backend")]
    staged: bool,
    /// End each run at the first case that fails: enough to say that a fault is caught, not how many cases catch it.
    #[arg(long)]
    fail_fast: bool,
    /// Write the result here, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A fault in the plugin's list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    name: String,
    /// The ops to judge; empty for all.
    ops: Vec<String>,
    /// The families to judge; empty for all.
    families: Vec<String>,
    about: String,
    /// The package with the fault.
    package: &'static str,
}

/// The suite's results of a run.
#[derive(Clone, Debug, Default, PartialEq)]
struct Verdict {
    cases: usize,
    /// Failed cases by family.
    bad: BTreeMap<String, usize>,
    /// The id of one failed case.
    first: Option<String>,
    seconds: f64,
}

impl Verdict {
    fn bad(&self) -> usize {
        self.bad.values().sum()
    }

    fn families(&self) -> Vec<&str> {
        self.bad.keys().map(String::as_str).collect()
    }
}

/// The program and plugins of the runs.
struct Judge {
    program: PathBuf,
    /// The library of each package.
    mutants: BTreeMap<&'static str, PathBuf>,
    backends: Vec<PathBuf>,
    /// The folder of the reports, one file for each concurrent run.
    reports: PathBuf,
    /// Whether a run ends at the first case that fails.
    fail_fast: bool,
}

/// Builds, runs the mutants, prints the table.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let judge = Judge::build(workspace, options)?;
    let mut faults = Vec::new();
    for package in MUTANTS {
        faults.extend(judge.faults(workspace, package)?);
    }
    let faults = chosen(faults, &options.only)?;

    let mut control = Verdict::default();
    for package in MUTANTS {
        let own = faults.iter().filter(|fault| fault.package == package);
        // Separately: together they would select all cases of all ops.
        let (of_ops, of_families): (Vec<&Fault>, Vec<&Fault>) = own.partition(|fault| !fault.ops.is_empty());
        let (of_both, of_ops): (Vec<&Fault>, Vec<&Fault>) =
            of_ops.into_iter().partition(|fault| !fault.families.is_empty());
        for own in [of_ops, of_both, of_families].iter().filter(|own| !own.is_empty()) {
            let (ops, families) = together(own);
            let verdict = judge.judge(workspace, package, None, &ops, &families)?;
            let none = (verdict.cases == 0).then(|| "no case".to_string());
            if let Some(first) = verdict.first.as_ref().or(none.as_ref()) {
                let (bad, of) = (verdict.bad(), verdict.cases);
                return Err(Failure::Control { bad, of, first: format!("{first} of {package}") });
            }
            println!("control of {package}: {} cases passed in {:.1} s", verdict.cases, verdict.seconds);
            control.cases += verdict.cases;
            control.seconds += verdict.seconds;
        }
    }

    let begun = Instant::now();
    let verdicts = judge.each(workspace, &faults)?;
    let escaped: Vec<&str> = faults
        .iter()
        .zip(&verdicts)
        .filter(|(_, verdict)| verdict.bad() == 0)
        .map(|(fault, _)| fault.name.as_str())
        .collect();
    let seconds = control.seconds + begun.elapsed().as_secs_f64();
    println!("{} of {} faults caught, {seconds:.0} s", faults.len() - escaped.len(), faults.len());
    if let Some(path) = &options.json {
        let text = format!("{:#}\n", summary(&control, &faults, &verdicts));
        std::fs::write(path, text).map_err(Failure::file("write", path))?;
    }
    match escaped.len() {
        0 => Ok(()),
        count => Err(Failure::Escaped { escaped: count, of: faults.len(), names: escaped.join(", ") }),
    }
}

impl Judge {
    fn build(workspace: &Workspace, options: &Options) -> Result<Judge> {
        let mut packages = vec![build::PROGRAM.0];
        packages.extend(MUTANTS);
        let [first, rest @ ..] = BACKENDS;
        if options.backend.is_none() {
            packages.push(first);
        }
        packages.extend(rest);
        let built = build::for_tests(workspace, &packages)?;
        let program = if options.staged { dist::program(workspace) } else { built.program()? };
        let library = |package: &'static str| match &options.backend {
            _ if options.staged => Ok(dist::native_library(workspace, package)),
            Some(path) if package == first => Ok(path.clone()),
            _ => built.library(package),
        };
        let mut backends = Vec::new();
        for package in BACKENDS {
            let backend = library(package)?;
            backends.push(backend.canonicalize().map_err(Failure::file("find", &backend))?);
        }
        let reports = workspace.target().join("mutants");
        std::fs::create_dir_all(&reports).map_err(Failure::file("make", &reports))?;
        let mutants = MUTANTS.into_iter().map(|package| Ok((package, built.library(package)?)));
        let mutants = mutants.collect::<Result<_>>()?;
        Ok(Judge { program, mutants, backends, reports, fail_fast: options.fail_fast })
    }

    /// The program with the wrapped backend and, passed by `option` and thus ahead of it, the mutant.
    fn command(
        &self,
        workspace: &Workspace,
        package: &str,
        fault: &str,
        words: &[&str],
        option: &str,
    ) -> Command {
        let mut command = workspace.command(&self.program);
        command.args(words).arg(option).arg(&self.mutants[package]);
        self.backends.iter().for_each(|backend| {
            command.arg("--backends").arg(backend);
        });
        // A path with the separator of a list is in no list: the variable then names the first backend alone.
        let wrapped =
            std::env::join_paths(&self.backends).unwrap_or_else(|_| self.backends[0].clone().into());
        command.env(FAULT, fault).env(WRAPPED, wrapped).env_remove("KEYWAY_BACKEND_PATH");
        command.stdin(Stdio::null());
        command
    }

    /// A plugin's faults.
    fn faults(&self, workspace: &Workspace, package: &'static str) -> Result<Vec<Fault>> {
        let mut command = self.command(workspace, package, "list", &["ops"], "--backends");
        // Output of a plugin goes to the program's error output: the standard output is for the program's report alone.
        let output = command.output().map_err(|source| workspace::not_started(&command, source))?;
        let text = String::from_utf8_lossy(&output.stderr);
        match listed(package, &text) {
            faults if faults.is_empty() => Err(Failure::Output {
                command: workspace::line(&command),
                expected: "a line for each fault",
                got: text.chars().take(200).collect(),
            }),
            faults => Ok(faults),
        }
    }

    /// Tests each fault and prints its row. One run for each core is in progress, each with one worker: a run has few
    /// cases, and starting it takes longer than they do.
    fn each(&self, workspace: &Workspace, faults: &[Fault]) -> Result<Vec<Verdict>> {
        let width = faults.iter().map(|fault| fault.name.len()).max().unwrap_or_default();
        let next = AtomicUsize::new(0);
        let judge = || -> Result<Vec<(usize, Verdict)>> {
            let mut judged = Vec::new();
            while let Some((nth, fault)) = faults.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed))
            {
                let (ops, families) = together(&[fault]);
                let verdict = self.judge(workspace, fault.package, Some(&fault.name), &ops, &families)?;
                println!("{}", row(width, fault, &verdict));
                judged.push((nth, verdict));
            }
            Ok(judged)
        };
        let mut judged = Vec::new();
        std::thread::scope(|scope| {
            let count = std::thread::available_parallelism().map_or(1, usize::from);
            let threads: Vec<_> = (0..count).map(|_| scope.spawn(judge)).collect();
            for thread in threads {
                judged.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok(())
        })?;
        judged.sort_by_key(|(nth, _)| *nth);
        Ok(judged.into_iter().map(|(_, verdict)| verdict).collect())
    }

    /// Runs the cases of these ops and families, all if none is given, with an active fault or without one.
    fn judge(
        &self,
        workspace: &Workspace,
        package: &str,
        fault: Option<&str>,
        ops: &[&str],
        families: &[&str],
    ) -> Result<Verdict> {
        let mut words = vec!["conformance", "--timeout", TIMEOUT, "--seed", SEED];
        if families.is_empty() || families.iter().any(|family| !WHOLE.contains(family)) {
            words.push("--quick");
        }
        if fault.is_some() {
            words.extend(["--jobs", "1"]);
        }
        if self.fail_fast {
            words.push("--fail-fast");
        }
        ops.iter().for_each(|op| words.extend(["--op", op]));
        families.iter().for_each(|family| words.extend(["--family", family]));
        let mut command = self.command(workspace, package, fault.unwrap_or_default(), &words, "--library");
        let report = self.reports.join(format!("{package}-{}.json", fault.unwrap_or("control")));
        command.arg("--json").arg(&report);
        let name = package.strip_prefix("keyway-test-").unwrap_or(package);
        let known = workspace.path("test-plugins").join(name).join("known-failures.toml");
        if known.exists() {
            command.arg("--known").arg(known);
        }
        let mut run = || -> Result<std::result::Result<Verdict, String>> {
            // A report of an earlier run must not be taken for this run's.
            remove(&report)?;
            let begun = Instant::now();
            let output = command.stdin(Stdio::null()).output();
            let output = output.map_err(|source| workspace::not_started(&command, source))?;
            let seconds = begun.elapsed().as_secs_f64();
            let text = std::fs::read_to_string(&report).unwrap_or_default();
            let found = serde_json::from_str(&text).ok().and_then(|report| verdict(&report, seconds));
            let errors = String::from_utf8_lossy(&output.stderr);
            Ok(found.ok_or_else(|| {
                format!("{}, {} bytes of a report; {}", output.status, text.len(), last(&errors, 400))
            }))
        };
        // A machine that is short of memory may end a run before its report.
        let verdict = match run()? {
            Ok(verdict) => return Ok(verdict),
            Err(got) => {
                println!("{} of {package} runs again, without a verdict: {got}", fault.unwrap_or("control"));
                run()?
            }
        };
        verdict.map_err(|got| Failure::Output {
            command: workspace::line(&command),
            expected: "a report with cases",
            got,
        })
    }
}

/// The last characters of a text.
fn last(text: &str, count: usize) -> &str {
    let start = text.char_indices().rev().nth(count).map_or(0, |(at, _)| at);
    &text[start..]
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::file("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// The ops and the families to judge for these faults; empty for all.
fn together<'a>(faults: &[&'a Fault]) -> (Vec<&'a str>, Vec<&'a str>) {
    let of = |part: fn(&Fault) -> &Vec<String>| -> Vec<&'a str> {
        if faults.iter().any(|fault| part(fault).is_empty()) {
            return Vec::new();
        }
        let all: BTreeSet<&str> = faults.iter().flat_map(|fault| part(fault)).map(String::as_str).collect();
        all.into_iter().collect()
    };
    (of(|fault| &fault.ops), of(|fault| &fault.families))
}

/// Parses a plugin's list.
fn listed(package: &'static str, text: &str) -> Vec<Fault> {
    let fault = |line: &str| {
        let mut parts = line.strip_prefix(MARK)?.splitn(4, '\t').map(str::to_owned);
        let (name, ops, families, about) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let list =
            |text: String| text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        Some(Fault { name, ops: list(ops), families: list(families), about, package })
    };
    text.lines().filter_map(fault).collect()
}

/// The requested faults, all if none was named.
fn chosen(mut faults: Vec<Fault>, only: &[String]) -> Result<Vec<Fault>> {
    if let Some(name) = only.iter().find(|name| !faults.iter().any(|fault| fault.name == **name)) {
        let there: Vec<&str> = faults.iter().map(|fault| fault.name.as_str()).collect();
        return Err(Failure::NoFault { name: name.clone(), there: there.join(", ") });
    }
    faults.retain(|fault| only.is_empty() || only.contains(&fault.name));
    Ok(faults)
}

/// Summarises a report; `None` if it has no list of cases.
fn verdict(report: &Value, seconds: f64) -> Option<Verdict> {
    let cases = report["cases"].as_array()?;
    let mut verdict = Verdict { cases: cases.len(), seconds, ..Verdict::default() };
    for case in cases.iter().filter(|case| case["status"] == "failed" || case["status"] == "died") {
        *verdict.bad.entry(case["family"].as_str()?.to_owned()).or_default() += 1;
        verdict.first.get_or_insert(case["id"].as_str()?.to_owned());
    }
    Some(verdict)
}

fn row(width: usize, fault: &Fault, verdict: &Verdict) -> String {
    let caught = if verdict.bad() > 0 { "caught " } else { "ESCAPED" };
    let share = format!("{}/{}", verdict.bad(), verdict.cases);
    format!(
        "{:width$}  {caught}  {share:>9}  {:5.1} s  {}",
        fault.name,
        verdict.seconds,
        verdict.families().join(" ")
    )
}

fn summary(control: &Verdict, faults: &[Fault], verdicts: &[Verdict]) -> Value {
    let rounded = |seconds: f64| (seconds * 100.0).round() / 100.0;
    let mutant = |(fault, verdict): (&Fault, &Verdict)| {
        json!({
            "fault": fault.name,
            "about": fault.about,
            "plugin": fault.package,
            "ops": fault.ops,
            "caught": verdict.bad() > 0,
            "families": verdict.families(),
            "failed": verdict.bad(),
            "first": verdict.first,
            "cases": verdict.cases,
            "seconds": rounded(verdict.seconds),
        })
    };
    json!({
        "control": {
            "green": control.bad() == 0,
            "cases": control.cases,
            "failed": control.bad(),
            "seconds": rounded(control.seconds),
        },
        "mutants": faults.iter().zip(verdicts).map(mutant).collect::<Vec<_>>(),
        "caught": verdicts.iter().filter(|verdict| verdict.bad() > 0).count(),
        "of": faults.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_between_other_lines() {
        let text = "OP  CPU\n@keyway-mutant\tskip\tadd,mul\t\tskips an element\n@keyway-mutant\tbroken\n";
        let fault = Fault {
            name: "skip".into(),
            ops: vec!["add".into(), "mul".into()],
            families: Vec::new(),
            about: "skips an element".into(),
            package: "a",
        };
        let faults = listed("a", text);
        assert_eq!(faults, vec![fault]);
        assert_eq!(together(&[&faults[0]]), (vec!["add", "mul"], Vec::new()));
        assert_eq!(chosen(faults.clone(), &[]).unwrap(), faults);
        assert!(matches!(chosen(faults, &["other".into()]), Err(Failure::NoFault { .. })));
    }

    #[test]
    fn a_fault_is_caught_if_a_case_failed_or_died() {
        let case = |status: &str, family: &str| json!({"status": status, "family": family, "id": family});
        let of = |cases: Vec<Value>| verdict(&json!({"cases": cases}), 1.0);
        assert_eq!(of(Vec::new()).unwrap().cases, 0);
        assert_eq!(verdict(&json!({}), 1.0), None);
        let green =
            of(vec![case("passed", "values"), case("skipped", "out"), case("unsupported", "out")]).unwrap();
        assert_eq!((green.bad(), green.cases), (0, 3));
        let red = of(vec![case("died", "out"), case("passed", "out"), case("failed", "values")]).unwrap();
        assert_eq!(
            (red.bad(), red.families(), red.first.as_deref()),
            (2, vec!["out", "values"], Some("out"))
        );
    }

    #[test]
    fn the_summary_counts_what_was_caught() {
        let (name, ops, about) = ("a".into(), vec!["add".into()], "b".into());
        let fault = Fault { name, ops, families: Vec::new(), about, package: "c" };
        let red = Verdict { cases: 2, bad: [("values".to_owned(), 1)].into(), ..Verdict::default() };
        let all = summary(&Verdict::default(), &[fault.clone(), fault], &[red, Verdict::default()]);
        assert_eq!((all["caught"].as_u64(), all["of"].as_u64()), (Some(1), Some(2)));
        assert_eq!(all["mutants"][0]["families"], json!(["values"]));
        assert_eq!(all["mutants"][1]["caught"], false);
    }
}
