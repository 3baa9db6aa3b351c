//! `cargo xtask test`: every test of the workspace and of the workspaces under `examples/`.
//!
//! With cargo-nextest each test has its own process and a time limit, and the counts are those of its JUnit report; without it
//! the tests run by `cargo test`, so that a Rust toolchain is enough.
//!
//! Test programs find the plugins that they load beside themselves, because their packages name these plugins as
//! dev-dependencies; nothing has to be built or staged first. The examples, which stand for third-party plugins and programs,
//! look for an installed backend for the CPU, and for an installed `keyway`: the builds of the workspace's tests.

mod junit;

use crate::failure::{Failure, Result};
use crate::python;
use crate::workspace::{self, Workspace};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// The options of `cargo xtask test`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Run the workspace's tests by `cargo test` even if cargo-nextest is installed.
    #[arg(long)]
    pub plain: bool,
    /// Leave out the tests in which the suite judges a backend of this repository, because the staged program is to judge
    /// it afterwards, by every case. For `.ci/run`; with cargo-nextest only.
    #[arg(long, conflicts_with = "plain")]
    pub judged_later: bool,
    /// Arguments for the runner, as after `cargo test`; with any, only the workspace's tests run.
    #[arg(last = true)]
    pub arguments: Vec<String>,
}

/// The results of one runner.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Tally {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that were ignored or skipped.
    pub ignored: u64,
    /// The number of builds and test programs that ended without a count: a compile error, a crash.
    pub broken: u64,
}

impl Tally {
    pub fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.broken += other.broken;
    }

    /// Counts a command that failed although none of its tests failed.
    fn note(&mut self, command: &Command, status: ExitStatus) {
        if !status.success() {
            eprintln!("`{}` ended with {status}", workspace::line(command));
            self.broken += u64::from(self.failed == 0 && self.broken == 0);
        }
    }

    /// The failed tests, plus one for each program that ended without a count.
    pub fn all_failed(&self) -> u64 {
        self.failed + self.broken
    }
}

/// The folders in which programs look for backends.
const BACKENDS: &str = "KEYWAY_BACKEND_PATH";
/// The variable that switches probes off: test programs load what was just built; trials have their own tests, and the
/// user's state is not changed.
const PROBE: (&str, &str) = ("KEYWAY_PROBE", "off");
/// The variable with the program's path, for the examples that run the suite.
const PROGRAM: &str = "KEYWAY";
/// The variable with the path of an optimised build of the program, which tests then run instead of the unoptimised one.
const OPTIMISED: &str = "KEYWAY_TESTED_PROGRAM";

/// The tests that `--judged-later` leaves out. `.ci/run` judges the staged libraries by these cases and others, a sample of the quick
/// cases of the CPU backend's unoptimised build, whose kernels have overflow checks, and of the test device, and runs the suite under
/// each fault.
const JUDGED_LATER: &[&str] = &[
    "the_cpu_backend_passes_the_quick_run",
    "another_device_passes_the_quick_run",
    "another_device_passes_the_quick_run_of_the_slow_families",
    "the_cpu_backend_passes_the_quick_run_of_large_sizes",
    "faults_are_found_by_the_family_that_is_about_them",
    "faults_of_ops_and_layouts_that_plugins_bring_are_found",
    "faults_of_devices_and_interposers_are_found",
    "faults_of_few_sizes_and_values_are_found_by_drawn_calls",
    "the_cpu_backend_passes_the_quick_run_of_millions_of_elements",
    "the_backend_for_images_passes_every_case",
    "the_cpu_backend_passes_the_quick_run_of_many_calls",
    "every_case_of_element_wise_is_as_expected",
    "every_case_of_reductions_and_indices_is_as_expected",
    "every_case_of_scans_and_sorts_is_as_expected",
    "every_case_of_products_and_softmax_is_as_expected",
    "every_case_of_norms_and_pools_is_as_expected",
    "every_case_of_sampled_grids_is_as_expected",
    "every_case_of_attention_is_as_expected",
    "every_case_of_sparse_gradients_is_as_expected",
    "every_case_of_a_product_is_as_expected_with_cublaslt",
    "every_case_of_coordinates_is_as_expected",
];

/// The path of nextest's report: that of its default profile in `.config/nextest.toml`.
const REPORT: &str = "target/nextest/default/junit.xml";

/// Settings for all workspaces under `examples/`, so that shared dependencies are built once, and that their tests, some of
/// which train and judge, run optimised code. They use too little of the frontend, which takes longest to build, for it to be
/// optimised.
const EXAMPLES_PROFILE: [&str; 6] = [
    "--config",
    "profile.dev.opt-level=1",
    "--config",
    "profile.dev.debug=false",
    "--config",
    "profile.dev.package.keyway.opt-level=0",
];

/// The source of the counts of a command's tests.
enum Counts {
    /// In the printed lines.
    Lines,
    /// In the JUnit report that the command writes to this file.
    Report(PathBuf),
}

/// Runs everything, continues after failures, and prints the totals as the last line.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let start = Instant::now();
    let mut parts = Vec::new();
    let mut skipped = None;
    // Whether a part succeeded.
    let mut step = |name: &str, mut command: Command, counts: Counts| -> Result<bool> {
        println!("\n== {name}: {}", workspace::line(&command));
        command.env(PROBE.0, PROBE.1);
        let tally = match counts {
            Counts::Lines => follow(&mut command)?,
            Counts::Report(path) => report(&mut command, &path)?,
        };
        parts.push((name.to_owned(), tally));
        Ok(tally.all_failed() == 0)
    };

    // Installed backends of the caller are not the ones just built.
    let cargo = || {
        let mut command = workspace.cargo();
        command.env_remove(BACKENDS);
        command
    };
    // Packages may take minutes to come, and no processor time.
    let python = options.arguments.is_empty().then(|| {
        let workspace = workspace.clone();
        std::thread::spawn(move || python::Tests::prepare(&workspace))
    });
    build_stand_in(workspace);
    let nextest = !options.plain && has_nextest(workspace);
    if nextest {
        let mut tests = cargo();
        tests.args(["nextest", "run", "--no-fail-fast", "--color=never"]);
        // One more than there are cores: some tests wait for time limits.
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        if !options.arguments.iter().any(|word| word.starts_with("--test-threads") || word.starts_with("-j"))
        {
            tests.arg(format!("--test-threads={}", cores + 1));
        }
        if options.judged_later {
            println!("left out, to be judged later by more cases: {}", JUDGED_LATER.join(", "));
            tests.arg("-E").arg(all_but(JUDGED_LATER));
        }
        tests.args(selection(&options.arguments));
        step("workspace", tests, Counts::Report(workspace.path(REPORT)))?;
    } else {
        let mut tests = cargo();
        tests.args(["test", "--no-fail-fast"]).args(selection(&options.arguments));
        step("workspace", tests, Counts::Lines)?;
    }
    if let Some(python) = python {
        let documentation = nextest.then(|| Aside::start(workspace, cargo())).transpose()?;
        let backends = installed_backends(workspace)?;
        let program = std::env::var_os(OPTIMISED)
            .map_or_else(|| workspace.target().join("debug/keyway"), PathBuf::from);
        for manifest in example_workspaces(&workspace.path("examples"))? {
            let name = manifest
                .parent()
                .and_then(Path::file_name)
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let cargo = |verb: &str| {
                let mut command = workspace.cargo();
                command.arg(verb).args(EXAMPLES_PROFILE).arg("--manifest-path").arg(&manifest);
                command.arg("--target-dir").arg(workspace.target());
                command.env(BACKENDS, &backends).env(PROGRAM, &program);
                command
            };
            step(&format!("build of examples/{name}"), cargo("build"), Counts::Lines)?;
            let mut tests = cargo("test");
            tests.args(["--workspace", "--no-fail-fast"]);
            step(&format!("examples/{name}"), tests, Counts::Lines)?;
        }
        match python.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
            Ok(tests) => {
                if step("build of python", tests.build(workspace, &EXAMPLES_PROFILE), Counts::Lines)? {
                    step("python", tests.run(workspace, &backends)?, Counts::Report(tests.report))?;
                }
            }
            Err(reason) => skipped = Some(format!("python: skipped: {reason}")),
        }
        if let Some(documentation) = documentation {
            parts.push(documentation.ended()?);
        }
    }

    let mut sum = Tally::default();
    println!("\n== Summary");
    for (name, tally) in &parts {
        println!("{}", summary_line(name, tally));
        sum.add(*tally);
    }
    if let Some(line) = skipped {
        println!("{line}");
    }
    println!("{} ignored, {:.0} s", sum.ignored, start.elapsed().as_secs_f64());
    println!("{} passed, {} failed", sum.passed, sum.all_failed());
    match sum {
        Tally { failed: 0, broken: 0, .. } => Ok(()),
        Tally { failed, broken, .. } => Err(Failure::Tests { failed, broken }),
    }
}

/// Builds the stand-in for CUDA's driver before the tests that load it, whose time limit is too short for a C++ compiler on a busy
/// machine. A failure is reported by these tests.
fn build_stand_in(workspace: &Workspace) {
    let begin = Instant::now();
    match keyway_test_cuda_driver::build(&workspace.root, &workspace.target()) {
        Ok(_) => println!("the stand-in for CUDA's driver: built in {:.0} s", begin.elapsed().as_secs_f64()),
        Err(reason) => println!("the stand-in for CUDA's driver: {reason}"),
    }
}

/// The documentation tests, run in parallel with the examples' tests: they compile as one program, which occupies one core,
/// and the examples use the other. Their output is buffered until they have ended.
struct Aside {
    line: String,
    log: PathBuf,
    tests: std::thread::JoinHandle<Result<Tally>>,
}

impl Aside {
    fn start(workspace: &Workspace, mut command: Command) -> Result<Aside> {
        command.args(["test", "--workspace", "--no-fail-fast", "--doc"]).env(PROBE.0, PROBE.1);
        let line = workspace::line(&command);
        let log = workspace.target().join("documentation.log");
        let output = File::create(&log).map_err(Failure::file("write", &log))?;
        let errors = output.try_clone().map_err(Failure::file("write", &log))?;
        let tests = std::thread::spawn(move || follow_into(&mut command, output, errors));
        Ok(Aside { line, log, tests })
    }

    /// Waits, prints the buffered output, and returns the part's name and counts.
    fn ended(self) -> Result<(String, Tally)> {
        const NAME: &str = "documentation";
        let tally = self.tests.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        println!("\n== {NAME}: {}", self.line);
        let mut log = File::open(&self.log).map_err(Failure::file("read", &self.log))?;
        // A closed terminal must not stop the count.
        let _ = std::io::copy(&mut log, &mut std::io::stdout());
        Ok((NAME.to_owned(), tally))
    }
}

/// The libraries that the examples and the Python package find: the CPU backend, and those of Fourier transforms, linear algebra and
/// sparse tensors.
const INSTALLED: [&str; 4] = [
    "libkeyway_backend_cpu.so",
    "libkeyway_backend_fft.so",
    "libkeyway_backend_linalg.so",
    "libkeyway_backend_sparse.so",
];

/// A folder with these libraries, as the workspace's tests have built them, and no other. If a build failed, its library is missing,
/// and the examples report a missing backend.
fn installed_backends(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target().join("examples/backends");
    std::fs::create_dir_all(&folder).map_err(Failure::file("make", &folder))?;
    for name in INSTALLED {
        let (from, to) = (workspace.target().join("debug/deps").join(name), folder.join(name));
        // An older build must not be taken for this one.
        std::fs::remove_file(&to).or_else(unless_absent).map_err(Failure::file("remove", &to))?;
        std::fs::copy(&from, &to).map(drop).or_else(unless_absent).map_err(Failure::file("copy", &from))?;
    }
    Ok(folder)
}

/// A missing file needs no removal.
fn unless_absent(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Whether cargo-nextest is installed.
fn has_nextest(workspace: &Workspace) -> bool {
    let mut command = workspace.cargo();
    command.args(["nextest", "--version"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Nextest's filter expression for all tests but these.
fn all_but(names: &[&str]) -> String {
    let each: Vec<String> = names.iter().map(|name| format!("test(/(^|::){name}$/)")).collect();
    format!("not ({})", each.join(" | "))
}

/// The caller's arguments, with `--workspace` prepended unless they name packages, since cargo ignores the names otherwise.
fn selection(arguments: &[String]) -> Vec<&str> {
    let mut own = arguments.iter().map(String::as_str).take_while(|word| *word != "--");
    let named = own.any(|word| word.starts_with("-p") || word.starts_with("--package"));
    let all = (!named).then_some("--workspace");
    all.into_iter().chain(arguments.iter().map(String::as_str)).collect()
}

fn summary_line(name: &str, tally: &Tally) -> String {
    let broken = match tally.broken {
        0 => String::new(),
        _ => ", did not finish: see above".to_owned(),
    };
    format!("{name}: {} passed, {} failed, {} ignored{broken}", tally.passed, tally.failed, tally.ignored)
}

/// Runs a command that writes a JUnit report, and sums the report's counts. Without a report the command counts as broken, as
/// does a failure of the command without a failed test in the report.
fn report(command: &mut Command, path: &Path) -> Result<Tally> {
    // An older report must not be taken for this run's.
    std::fs::remove_file(path).or_else(unless_absent).map_err(Failure::file("remove", path))?;
    let status =
        command.stdin(Stdio::null()).status().map_err(|source| workspace::not_started(command, source))?;
    let mut tally = match std::fs::read_to_string(path) {
        Ok(text) => {
            junit::read(&text).map_err(|fault| Failure::Report { path: path.to_path_buf(), fault })?
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Tally::default(),
        Err(error) => return Err(Failure::file("read", path)(error)),
    };
    tally.note(command, status);
    Ok(tally)
}

/// Runs a command, forwards both of its outputs, and sums the counts in their lines. A command that fails without a failed test
/// counts as broken.
pub fn follow(command: &mut Command) -> Result<Tally> {
    follow_into(command, std::io::stdout(), std::io::stderr())
}

/// As [`follow`], with other destinations for the outputs.
fn follow_into(command: &mut Command, to: impl Write, errors_to: impl Write + Send) -> Result<Tally> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| workspace::not_started(command, source))?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let errors = scope.spawn(move || errors.map(|stream| echo(stream, errors_to)));
        if let Some(stream) = output {
            tally.add(echo(stream, to));
        }
        if let Ok(Some(other)) = errors.join() {
            tally.add(other);
        }
    });
    let status = child.wait().map_err(|source| workspace::not_started(command, source))?;
    tally.note(command, status);
    Ok(tally)
}

/// Copies a stream line by line and sums the counts. Bytes that are not UTF-8 are copied unchanged.
fn echo(stream: impl Read, mut to: impl Write) -> Tally {
    let mut tally = Tally::default();
    for line in BufReader::new(stream).split(b'\n').map_while(std::result::Result::ok) {
        // A closed terminal must not stop the count.
        let _ = to.write_all(&line).and_then(|()| to.write_all(b"\n"));
        if let Some(found) = libtest_line(&String::from_utf8_lossy(&line)) {
            tally.add(found);
        }
    }
    tally
}

/// Parses `test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`, and cargo's message
/// about a test program that a signal ended, which prints no such line.
fn libtest_line(line: &str) -> Option<Tally> {
    if line.trim_start().starts_with("process didn't exit successfully") && line.contains("(signal:") {
        return Some(Tally { broken: 1, ..Tally::default() });
    }
    let counts = line.strip_prefix("test result: ")?;
    Some(Tally {
        passed: number_before(counts, " passed"),
        failed: number_before(counts, " failed"),
        ignored: number_before(counts, " ignored"),
        broken: 0,
    })
}

/// The number directly before a word; 0 without the word.
fn number_before(text: &str, word: &str) -> u64 {
    let Some(end) = text.find(word) else { return 0 };
    let digits = text[..end].rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

/// The Cargo.toml of each folder under `examples` that is a separate workspace.
fn example_workspaces(examples: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(examples) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Failure::file("list", examples)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let manifest = entry.map_err(Failure::file("list", examples))?.path().join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).unwrap_or_default();
        if text.lines().any(|line| line.trim() == "[workspace]") {
            found.push(manifest);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libtest_counts() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s";
        let tally = Tally { passed: 12, failed: 3, ignored: 1, broken: 0 };
        assert_eq!(libtest_line(line), Some(tally));
        assert_eq!(libtest_line("running 3 tests"), None);
        let crash =
            "  process didn't exit successfully: `target/debug/deps/a-1` (signal: 11, SIGSEGV: invalid)";
        assert_eq!(libtest_line(crash), Some(Tally { broken: 1, ..Tally::default() }));
        // A program whose tests failed exits with 101 and has printed its counts.
        let ordinary = "  process didn't exit successfully: `target/debug/deps/a-1` (exit status: 101)";
        assert_eq!(libtest_line(ordinary), None);
    }

    #[test]
    fn named_packages_replace_the_workspace() {
        let words = |text: &str| selection(&text.split(' ').map(str::to_owned).collect::<Vec<_>>()).join(" ");
        assert_eq!(words("-p a --release"), "-p a --release");
        assert_eq!(words("--package=a"), "--package=a");
        assert_eq!(words("name -- -p"), "--workspace name -- -p");
        assert_eq!(selection(&[]), ["--workspace"]);
    }

    #[test]
    fn what_is_judged_later_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
        let texts = [
            "cli/tests/conformance.rs",
            "cli/tests/mutants.rs",
            "test-plugins/cuda-driver/tests/conformance.rs",
        ]
        .map(|path| std::fs::read_to_string(root.join(path)).expect("a test"));
        for name in JUDGED_LATER {
            let head = format!("\n#[test]\nfn {name}() {{\n");
            assert!(texts.iter().any(|text| text.contains(&head)), "{name}");
        }
        assert_eq!(all_but(&["a", "b"]), "not (test(/(^|::)a$/) | test(/(^|::)b$/))");
    }

    #[test]
    fn a_report_is_read_and_an_old_one_is_not() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let path = scratch.path().join("junit.xml");
        std::fs::write(&path, "<testsuites><testcase/></testsuites>").expect("an old report");
        let mut fails = Command::new("rustc");
        fails.arg("--no-such-option").stderr(Stdio::null());
        let tally = report(&mut fails, &path).expect("rustc starts");
        assert_eq!(tally, Tally { broken: 1, ..Tally::default() }, "no report of this run");
        let mut works = Command::new("rustc");
        works.arg("--version").stdout(Stdio::null());
        assert_eq!(report(&mut works, &path).expect("rustc starts"), Tally::default(), "nothing to run");
    }

    #[test]
    fn a_failure_without_counts_is_not_lost() {
        let mut command = Command::new("rustc");
        command.arg("--no-such-option");
        let tally = follow(&mut command).expect("rustc starts");
        assert_eq!(tally.all_failed(), 1);
        assert!(summary_line("a", &tally).contains("did not finish"));
    }

    #[test]
    fn echo_keeps_bytes_and_sums() {
        let mut shown = Vec::new();
        let text = b"test result: ok. 2 passed; 0 failed\n\xff\ntest result: ok. 3 passed; 1 failed\n";
        let tally = echo(text.as_slice(), &mut shown);
        assert_eq!((tally.passed, tally.failed), (5, 1));
        assert_eq!(shown, text);
    }

    #[test]
    fn only_workspaces_of_their_own_are_examples() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        assert!(example_workspaces(&scratch.path().join("absent")).expect("an empty list").is_empty());
        for (name, text) in [("own", "[workspace]\n[package]\n"), ("member", "[package]\n")] {
            std::fs::create_dir(scratch.path().join(name)).expect("a folder");
            std::fs::write(scratch.path().join(name).join("Cargo.toml"), text).expect("a manifest");
        }
        let found = example_workspaces(scratch.path()).expect("a list");
        assert_eq!(found, [scratch.path().join("own/Cargo.toml")]);
    }
}
