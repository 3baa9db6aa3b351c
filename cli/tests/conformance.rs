//! `keyway conformance`, through the program.

mod support;

use keyway::ops::def::Dtypes;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::{bare, keyway, known_failures_of, library, library_of, program, run};

fn report(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A copy of the CPU backend in its own folder, so that it has its own certificate.
fn installed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(library(), folder.path().join(library().file_name().unwrap())).unwrap();
    folder
}

fn in_folder(folder: &Path, arguments: &[&str]) -> support::Ran {
    let mut command = program(folder);
    command.args(arguments);
    run(command)
}

/// Families that take four fifths of a run's time, with large tensors and many calls. They have their own tests, so that no
/// test reaches its time limit on a slow machine.
const SLOW: [&[&str]; 4] = [
    &["corner_grads", "sizes"],
    &["large", "magnitudes"],
    // In the families below, overflow checks find no more than in those above: `cargo xtask test --judged-later` leaves them out.
    &["scaled"],
    &["leaks", "soak", "state", "threads"],
];

/// All other families except the one with drawn calls.
fn fast() -> Vec<&'static str> {
    let all = keyway_conformance::families::ALL.iter().map(|family| family.name);
    all.filter(|name| !SLOW.concat().contains(name) && *name != keyway_conformance::families::DRAWN).collect()
}

fn options(families: &[&'static str]) -> Vec<&'static str> {
    families.iter().flat_map(|name| ["--family", name]).collect()
}

/// Every quick case of these families is as expected, and more than `more_than` pass.
#[track_caller]
fn assert_the_cpu_passes(families: &[&'static str], more_than: u64) -> Value {
    let folder = installed();
    let json = folder.path().join("report.json");
    let mut arguments =
        vec!["conformance", "cpu", "--quick", "--seed", "0", "--json", json.to_str().unwrap()];
    arguments.extend(options(families));
    let ran = in_folder(folder.path(), &arguments);
    let bad: Vec<String> = report(&json)["cases"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| ["failed", "died", "not_run", "unexpected_pass"].contains(&c["status"].as_str().unwrap()))
        .map(ToString::to_string)
        .collect();
    assert!(bad.is_empty(), "{} cases:\n{}", bad.len(), bad[..bad.len().min(20)].join("\n"));
    let ran = ran.expect(0);
    assert!(ran.out.contains("every one as expected"), "{}", ran.out);
    let report = report(&json);
    assert!(report["counts"]["passed"].as_u64().unwrap() > more_than);
    report
}

#[test]
fn the_cpu_backend_passes_the_quick_run() {
    // Of the ops of complex numbers alone, the views have no kernel, and the Fourier transforms a library of their own.
    let judged = keyway::ops::all()
        .filter(|op| op.dtypes != Dtypes::COMPLEX || !(op.rule.is_view() || op.library().is_some()));
    assert_eq!(assert_the_cpu_passes(&fast(), 5_000)["ops"], judged.count());
}

#[test]
fn the_cpu_backend_passes_the_quick_run_of_large_sizes() {
    assert_the_cpu_passes(SLOW[0], 5_000);
}

#[test]
fn the_cpu_backend_passes_the_quick_run_of_many_terms_and_magnitudes() {
    assert_the_cpu_passes(SLOW[1], 1_000);
}

/// With fixed seeds, so that a run can be repeated. Manual runs draw other seeds.
#[test]
fn the_cpu_backend_passes_what_some_seeds_draw() {
    let folder = installed();
    for seed in ["0", "1", "20261129"] {
        let ran = in_folder(
            folder.path(),
            &["conformance", "cpu", "--family", "drawn", "--quick", "--seed", seed, "--drawing", "15"],
        );
        let ran = ran.expect(0);
        assert!(
            ran.out.contains("every one as expected") && ran.out.contains("calls were drawn from seed"),
            "{}",
            ran.out
        );
    }
}

/// The default seed is different each time.
#[test]
fn each_run_draws_other_calls() {
    let folder = installed();
    let seed = || {
        let json = folder.path().join("report.json");
        let arguments = ["--family", "drawn", "--op", "add", "--quick", "--json", json.to_str().unwrap()];
        in_folder(folder.path(), &[&["conformance", "cpu"], &arguments[..]].concat()).expect(0);
        let report = report(&json);
        let again = report["draws"]["again"].as_str().unwrap();
        assert!(again.contains(&format!("--seed {} ", report["draws"]["seed"])), "{again}");
        report["draws"]["seed"].as_u64().unwrap()
    };
    assert_ne!((seed(), seed()), (seed(), seed()));
    let none = in_folder(folder.path(), &["conformance", "cpu", "--op", "add", "--quick", "--drawing", "0"])
        .expect(0);
    assert!(!none.out.contains("drawn"), "{}", none.out);
}

#[test]
fn the_cpu_backend_passes_the_quick_run_of_millions_of_elements() {
    assert_the_cpu_passes(SLOW[2], 500);
}

#[test]
fn the_cpu_backend_passes_the_quick_run_of_many_calls() {
    assert_the_cpu_passes(SLOW[3], 1_000);
}

/// A sample is drawn by the seed alone, has about the size that was asked for, and is no whole run.
#[test]
fn a_sample_is_a_random_part_of_the_cases() {
    let folder = installed();
    let json = folder.path().join("report.json");
    let cases = |more: &[&str]| -> Vec<String> {
        let narrowed =
            ["conformance", "cpu", "--op", "add", "--family", "strided", "--json", json.to_str().unwrap()];
        let ran = in_folder(folder.path(), &[&narrowed[..], more].concat()).expect(0);
        assert_eq!(
            ran.out.contains("a sample of 0.25 of the cases"),
            more.contains(&"--sample"),
            "{}",
            ran.out
        );
        report(&json)["cases"].as_array().unwrap().iter().map(|case| case["id"].to_string()).collect()
    };
    let (all, first) = (cases(&[]).len(), cases(&["--sample", "0.25", "--seed", "1"]));
    assert!((all / 8..all / 2).contains(&first.len()), "{} of {all}", first.len());
    assert_eq!(first, cases(&["--sample", "0.25", "--seed", "1"]));
    assert_ne!(first, cases(&["--sample", "0.25", "--seed", "2"]));
    for wrong in ["0", "1.5", "-0.1", "ten"] {
        let ran = in_folder(folder.path(), &["conformance", "cpu", "--sample", wrong]).expect(2);
        assert!(ran.err.contains("a share above 0 and at most 1"), "{}", ran.err);
    }
}

/// The backend's kernels are for images in one memory format, which every family covers.
#[test]
fn the_backend_for_images_passes_every_case() {
    let folder = installed();
    let images = library_of("keyway_backend_channels_last");
    std::fs::copy(&images, folder.path().join(images.file_name().unwrap())).unwrap();
    let json = folder.path().join("report.json");
    let ran = in_folder(
        folder.path(),
        &["conformance", "keyway-channels-last", "--seed", "0", "--json", json.to_str().unwrap()],
    );
    let ran = ran.expect(0);
    assert!(ran.out.contains("every one as expected"), "{}", ran.out);
    let report = report(&json);
    for family in ["kernels", "sizes", "strided", "guards", "gradients", "gradcheck"] {
        let count = |status: &str| report["families"][family][status].as_u64().unwrap_or(0);
        assert!(count("passed") > 0, "{family}: {}", report["families"]);
    }
}

/// Calls that a plugin does not claim are unsupported, and everything else is as expected.
#[track_caller]
fn assert_passes_the_quick_run(name: &str, families: &[&'static str], family: &str) {
    assert_passes(name, &options(families), family);
}

/// The same for the quick cases that these options select.
#[track_caller]
fn assert_passes(name: &str, narrowed: &[&str], family: &str) {
    let library = library_of(name);
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("report.json");
    let known = known_failures_of(name);
    let mut arguments = vec!["conformance", "--library", library.to_str().unwrap()];
    arguments.extend(["--quick", "--seed", "0", "--json", json.to_str().unwrap()]);
    arguments.extend(narrowed);
    arguments.extend(known.iter().map(String::as_str));
    let ran = keyway(&arguments);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out, ran.err);
    let report = report(&json);
    assert!(report["families"][family]["passed"].as_u64().unwrap() >= 5, "{}", report["families"]);
}

/// The options that narrow a run to the ops of which the device has a kernel, and to every `others`th of the other ops.
fn ops_served_on(device: &str, library: &Path, others: usize) -> Vec<String> {
    let listed =
        keyway(&["ops", "--backends", library.to_str().unwrap(), "--device", device, "--json"]).expect(0);
    let ops: Value = serde_json::from_str(&listed.out).unwrap();
    let is_served = |op: &&Value| {
        let by_dtype = op["targets"][0]["served_by"].as_object().unwrap();
        by_dtype.values().any(|backend| !backend.is_null())
    };
    let (served, rest): (Vec<&Value>, Vec<&Value>) = ops.as_array().unwrap().iter().partition(is_served);
    assert!(served.len() > 20, "{served:?}");
    let rest = rest.into_iter().step_by(others);
    let options = served.into_iter().chain(rest).map(|op| op["op"].as_str().unwrap().to_string());
    options.flat_map(|op| ["--op".to_string(), op]).collect()
}

/// An asynchronous device with few kernels, whose memory the host cannot read. Of the ops that it does not serve every case is
/// refused, so a tenth of them is enough, and one in the slow families.
fn assert_the_device_passes(families: &[&'static str], others: usize, family: &str) {
    const DEVICE: &str = "keyway_test_device";
    let ops = ops_served_on("test.keyway/remote:0", &library_of(DEVICE), others);
    let ops: Vec<&str> = ops.iter().map(String::as_str).collect();
    assert_passes(DEVICE, &[options(families), ops].concat(), family);
}

#[test]
fn another_device_passes_the_quick_run() {
    assert_the_device_passes(&fast(), 10, "values");
    // Not of ops, but of the device itself.
    assert_passes_the_quick_run("keyway_test_device", &["device"], "device");
}

#[test]
fn another_device_passes_the_quick_run_of_the_slow_families() {
    assert_the_device_passes(&SLOW[..2].concat(), usize::MAX, "large");
}

/// Only a few kernels, since each of them waits for the device's queue.
#[test]
fn another_device_passes_the_quick_run_of_millions_of_elements_and_calls() {
    let ops = ["add", "mm", "relu", "sum"].iter().flat_map(|op| ["--op", op]).collect::<Vec<_>>();
    assert_passes("keyway_test_device", &[options(&SLOW[2..].concat()), ops].concat(), "scaled");
}

#[test]
fn a_composite_layout_passes_the_quick_run() {
    // All families: the slow ones have strided tensors only, and so do not test this layout.
    assert_passes_the_quick_run("keyway_test_csr", &[], "layout");
}

#[test]
fn all_reports_are_written_and_the_list_shows_the_standing() {
    let folder = installed();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let before = in_folder(folder.path(), &["backend", "list"]).expect(0);
    assert!(before.out.contains("never run"), "{}", before.out);
    let (json, junit, html) = (path("r.json"), path("r.xml"), path("r.html"));
    let ran = in_folder(
        folder.path(),
        &[
            "conformance",
            "cpu",
            "--op",
            "ad[d]",
            "--op",
            "add",
            "--json",
            &json,
            "--junit",
            &junit,
            "--html",
            &html,
        ],
    );
    // A pattern that nothing matches is wrong usage.
    ran.expect(2);
    let arguments =
        ["conformance", "cpu", "--op", "add", "--json", &json, "--junit", &junit, "--html", &html];
    in_folder(folder.path(), &arguments).expect(0);
    let report = report(Path::new(&json));
    assert_eq!(report["plugin"], "keyway-cpu");
    assert_eq!(report["sha256"].as_str().unwrap().len(), 64);
    assert!(report["cases"].as_array().unwrap().len() > 1000);
    let junit = std::fs::read_to_string(&junit).unwrap();
    assert!(junit.starts_with("<?xml") && junit.contains("values/add/f32/0"), "{}", &junit[..200]);
    let html = std::fs::read_to_string(&html).unwrap();
    assert!(html.contains("keyway-cpu") && !html.contains("http://") && !html.contains("https://"));
    // A partial run writes no certificate.
    let after = in_folder(folder.path(), &["backend", "list"]).expect(0);
    assert!(after.out.contains("never run"), "{}", after.out);
}

#[test]
fn a_whole_run_leaves_a_certificate_and_the_list_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let given = library_of("keyway_test_ops");
    let file = folder.path().join(given.file_name().unwrap());
    std::fs::copy(&given, &file).unwrap();
    // The plugin's ops are composed of others, which the CPU backend serves.
    let paths = std::env::join_paths([folder.path(), &library()]).unwrap();
    let run_with = |arguments: &[&str]| {
        let mut command = program(folder.path());
        // A verdict of an earlier run of this test is in the state that all tests share.
        command.env("KEYWAY_BACKEND_PATH", &paths).env("XDG_STATE_HOME", folder.path().join("state"));
        command.args(arguments);
        run(command)
    };
    let judge = |arguments: &[&str]| {
        let given = ["conformance", "--library", file.to_str().unwrap()];
        run_with(&[&given[..], arguments].concat())
    };
    let standing = || {
        let list = run_with(&["backend", "list", "--json"]).expect(0).json();
        let backends = list["backends"].as_array().unwrap();
        let own = backends.iter().find(|b| b["path"] == file.to_str().unwrap()).unwrap();
        own["conformance"].as_str().unwrap().to_string()
    };
    judge(&["--op", "plug_softsign"]).expect(0);
    assert_eq!(standing(), "never run");
    // Two of its ops are wrong on purpose.
    judge(&[]).expect(1);
    assert!(standing().starts_with("failed "), "{}", standing());
    let known = folder.path().join("known.toml");
    let entry = "[[known]]\ncase = \"kernels/plug_wrong/*\"\nreason = \"wrong on purpose\"\n";
    std::fs::write(&known, entry).unwrap();
    judge(&["--known", known.to_str().unwrap()]).expect(0);
    let text = standing();
    assert!(
        text.starts_with("certified ") && text.contains(" with 1 known failure; cpu, strided: "),
        "{text}"
    );
    assert!(text.contains(" kernels reached"), "{text}");
    // Another build of the library: the certificate is of a file that no longer exists.
    std::fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(b"\0").unwrap();
    assert_eq!(standing(), "stale");
    let certificate = keyway_conformance::certificate::Certificate::beside(&file);
    std::fs::write(&certificate, "{}").unwrap();
    assert_eq!(standing(), "not believed");
}

/// The judged content may be the one before the change or the one after it.
#[test]
fn a_library_that_changes_meanwhile_is_not_certified() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("libops.so");
    std::fs::copy(library_of("keyway_test_ops"), &file).unwrap();
    let judged = || {
        let mut command = program(&library());
        command.args(["conformance", "--op", "plug_softsign", "--library"]).arg(&file);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Changes while the run lasts, so that one of the changes follows the loading of the library.
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(b"\0").unwrap();
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
            let ran = run(command);
            over.store(true, Ordering::Relaxed);
            ran
        })
    };
    // The loader refuses a file that changes between its check and its loading.
    let ran =
        (0..100).map(|_| judged()).find(|ran| !ran.err.contains("got one that has changed since")).unwrap();
    assert_ne!(ran.code, Some(0), "{}", ran.out);
    assert!(ran.err.contains("was changed while it was judged"), "{}", ran.err);
    assert!(!keyway_conformance::certificate::Certificate::beside(&file).exists());
}

/// A crash is no known failure.
#[test]
fn no_list_excuses_a_death() {
    let folder = tempfile::tempdir().unwrap();
    let known = folder.path().join("known.toml");
    std::fs::write(&known, "[[known]]\ncase = \"*/relu/bf16/*\"\nreason = \"it crashes\"\n").unwrap();
    let mut command = program(&library());
    command.args(["conformance", "--case", "values/relu/bf16/0", "--known"]).arg(&known);
    command.arg("--library").arg(library_of("keyway_test_mutant"));
    command.env("KEYWAY_FAULT", "crash").env("KEYWAY_MUTANT_OF", library());
    let ran = run(command).expect(1);
    assert!(ran.out.contains("SIGSEGV") && ran.out.contains("no list can excuse"), "{}", ran.out);
}

#[test]
fn one_case_runs_again_by_its_id() {
    let ran = keyway(&["conformance", "cpu", "--case", "strided/mul/f32/3/transposed"]).expect(0);
    assert!(ran.out.contains("1 cases"), "{}", ran.out);
}

#[test]
fn names_that_nothing_has_are_wrong_usage() {
    for (arguments, message) in [
        (&["--op", "no_such_op"][..], "no op matches"),
        (&["--family", "nothing"], "there is no family `nothing`; there are:\n  values  "),
        (&["--dtype", "f33"], "there is no dtype `f33`"),
        (&["--case", "values/add/f32/9999"], "no case matches"),
        (&["--timeout", "-1"], "above 0"),
    ] {
        let ran = keyway(&[&["conformance", "cpu"], arguments].concat()).expect(2);
        assert!(ran.err.contains(message), "{arguments:?}: {}", ran.err);
    }
    let ran = keyway(&["conformance", "npu"]).expect(2);
    assert!(ran.err.contains("`npu`") && ran.err.contains("keyway-cpu"), "{}", ran.err);
    for (arguments, backend, what) in
        [(["conformance", "cuda"], "cuda", "cuda"), (["conformance", "sparse_coo"], "sparse", "sparse_coo")]
    {
        let ran = keyway(&arguments).expect(2);
        let would = format!("the backend `keyway-{backend}` would serve `{what}`; its library is");
        assert!(ran.err.contains(&would), "{}", ran.err);
    }
    let ran = bare(&["conformance", "cpu"]).expect(2);
    assert!(ran.err.contains("there are: none"), "{}", ran.err);
}

#[test]
fn every_family_is_listed_with_what_it_checks() {
    let list = bare(&["conformance", "--list"]).expect(0).out;
    let unknown = keyway(&["conformance", "cpu", "--family", "nothing"]).expect(2).err;
    // Lines are wrapped at the width of the screen.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (list, unknown) = (words(&list), words(&unknown));
    for family in keyway_conformance::families::ALL {
        let row = format!(" {} {}", family.name, family.about);
        assert!(list.contains(&row) && unknown.contains(&row), "{}: {list}\n{unknown}", family.name);
    }
}

#[test]
fn libraries_that_cannot_be_judged_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("libtext.so");
    std::fs::write(&text, "no library").unwrap();
    let ran = keyway(&["conformance", "--library", text.to_str().unwrap()]).expect(1);
    assert!(ran.err.contains("could not be loaded"), "{}", ran.err);
    let ran = keyway(&["conformance", "--library", "/no/such/file.so"]).expect(2);
    assert!(ran.err.contains("/no/such/file.so"), "{}", ran.err);
}

#[test]
fn a_library_without_kernels_has_nothing_to_judge() {
    let empty = library_of("keyway_test_empty");
    let ran = keyway(&["conformance", "--library", empty.to_str().unwrap()]).expect(1);
    assert!(ran.err.contains("registers no kernel, and no interposer that is on by default"), "{}", ran.err);
}

#[test]
fn a_report_that_cannot_be_written_is_reported_before_the_run() {
    let begun = Instant::now();
    let ran = keyway(&["conformance", "cpu", "--json", "/no/such/folder/report.json"]).expect(1);
    assert!(ran.err.contains("cannot write the report"), "{}", ran.err);
    assert!(!ran.out.contains("FAMILY") && begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn known_failures_must_fail() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("known.toml");
    let arguments = ["conformance", "cpu", "--case", "values/add/f32/0", "--known", list.to_str().unwrap()]
        .map(String::from);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    std::fs::write(&list, "[[known]]\ncase = \"values/add/f32/*\"\nreason = \"a try\"\n").unwrap();
    let ran = keyway(&arguments).expect(1);
    assert!(ran.out.contains("it passes, but is listed as a known failure: a try"), "{}", ran.out);
    std::fs::write(&list, "[[known]]\ncase = \"values/add/f32/*\"\n").unwrap();
    let ran = keyway(&arguments).expect(2);
    assert!(ran.err.contains("reason"), "{}", ran.err);
}

#[test]
#[cfg(unix)]
fn an_interrupt_leaves_a_partial_report_and_no_worker() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("report.json");
    let mut command = program(&library());
    command.args(["conformance", "cpu", "--jobs", "1", "--json", json.to_str().unwrap()]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The first line is printed once a tenth of the cases has ended.
    let mut first = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    lines.read_line(&mut first).unwrap();
    assert!(first.contains("cases"), "{first}");
    // Workers are child processes of the threads that serve them.
    let children = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten().flatten();
        let lists = tasks.map(|t| std::fs::read_to_string(t.path().join("children")).unwrap_or_default());
        lists.flat_map(|l| l.split_whitespace().map(String::from).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let workers = children();
    assert!(!workers.is_empty());
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let mut err = String::new();
    lines.read_to_string(&mut err).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{err}");
    let report = report(&json);
    assert_eq!(report["interrupted"], true);
    assert!(report["cases"].as_array().unwrap().len() < report["wanted"].as_u64().unwrap() as usize);
    for worker in workers {
        assert!(!Path::new(&format!("/proc/{worker}/exe")).exists(), "worker {worker} lives on");
    }
}

#[test]
fn the_oracle_can_be_exported_without_a_backend() {
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("samples");
    let ran = bare(&["conformance", "--export", into.to_str().unwrap()]).expect(0);
    assert!(ran.out.contains("samples in"), "{}", ran.out);
    let first = std::fs::read_to_string(into.join("add.jsonl")).unwrap();
    let line: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    assert_eq!(line["op"], "add");
    assert!(line["expected"].is_array());
    let one = folder.path().join("one");
    bare(&["conformance", "--export", one.to_str().unwrap(), "--op", "mul"]).expect(0);
    let files: Vec<_> = std::fs::read_dir(&one).unwrap().flatten().map(|f| f.file_name()).collect();
    assert_eq!(files, ["mul.jsonl"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_library_whose_path_is_no_text_is_judged_as_any_other() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(std::ffi::OsStr::from_bytes(b"lib\xff.so"));
    std::fs::copy(library_of("keyway_backend_cpu"), &file).unwrap();
    let json = folder.path().join("report.json");
    let mut command = program(Path::new("/nowhere/at/all"));
    command.args(["conformance", "--library"]).arg(&file);
    command.args(["--op", "exp", "--quick", "--dtype", "f32", "--family", "values", "--json"]).arg(&json);
    let ran = run(command).expect(0);
    assert!(!ran.err.contains("was changed"), "{}", ran.err);
    let report = report(&json);
    assert!(report["sha256"].as_str().is_some_and(|hash| hash.len() == 64), "{}", report["sha256"]);
    let again = report["cases"][0]["rerun"].to_string();
    assert!(again == "null" || again.contains("xff.so"), "{again}");
}
