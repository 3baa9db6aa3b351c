//! The reporting commands: their output with a backend, without one, and for unknown names.

mod support;

use std::io::Read;
use std::process::Stdio;
use support::{bare, keyway, library, library_of, program, run};

#[test]
fn the_installed_backend_is_listed() {
    let ran = keyway(&["backend", "list"]).expect(0);
    assert!(ran.out.contains("keyway-cpu") && ran.out.contains("used"), "{}", ran.out);
    let json = keyway(&["backend", "list", "--json"]).expect(0).json();
    assert_eq!(json["backends"][0]["library"]["manifest"]["name"], "keyway-cpu");
    assert_eq!(json["backends"][0]["outcome"]["verdict"], "chosen");
    assert!(json["searched"].as_array().unwrap().len() >= 2);
}

#[test]
fn with_nothing_installed_the_search_path_is_listed() {
    let ran = bare(&["backend", "list"]).expect(0);
    for part in
        ["No backend is installed", "KEYWAY_BACKEND_PATH", "beside the program", "To install one, put"]
    {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let json = bare(&["backend", "list", "--json"]).expect(0).json();
    assert_eq!(json["backends"].as_array().unwrap().len(), 0);
    let paths = bare(&["backend", "paths", "--json"]).expect(0).json();
    assert_eq!(paths[0]["origin"], "environment");
    assert_eq!(paths[0]["files"], 0);
    assert!(bare(&["backend", "paths"]).expect(0).out.contains("no library"));
}

#[test]
fn a_named_folder_goes_first_and_a_wrong_one_is_reported() {
    let library = library();
    let empty = tempfile::tempdir().unwrap();
    let mut command = program(empty.path());
    command.args(["--backends", library.to_str().unwrap(), "backend", "list"]);
    assert!(run(command).expect(0).out.contains("keyway-cpu"));
    let mut command = program(&library);
    command.args(["ops", "--backends", "/nowhere/at/all"]);
    let ran = run(command).expect(0);
    assert!(ran.err.contains("warning: /nowhere/at/all"), "{}", ran.err);
}

#[test]
fn a_file_that_is_no_library_has_its_verdict() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("libbad.so"), "text").unwrap();
    let mut command = program(folder.path());
    command.args(["backend", "list"]);
    let ran = run(command).expect(1);
    assert!(ran.out.contains("rejected") && ran.out.contains("libbad.so: expected"), "{}", ran.out);
    let mut command = program(folder.path());
    command.arg("doctor");
    let ran = run(command).expect(1);
    assert!(ran.out.contains("Verdict: none of the libraries can be used (1 rejected"), "{}", ran.out);
}

#[test]
fn ops_are_listed_with_who_serves_them() {
    let ran = keyway(&["ops"]).expect(0);
    let line = ran.out.lines().find(|line| line.starts_with("exp ")).unwrap();
    assert!(line.contains('A'), "{line}");
    assert!(ran.out.contains("A keyway-cpu"), "{}", ran.out);
    let json = keyway(&["ops", "--json"]).expect(0).json();
    let ops = json.as_array().unwrap();
    let op = |name: &str| ops.iter().find(|op| op["op"] == name).unwrap();
    let target = &op("add")["targets"][0];
    assert_eq!((&target["device"], &target["layout"]), (&"cpu".into(), &"strided".into()));
    assert_eq!(target["served_by"]["f32"], "keyway-cpu");
    assert_eq!(op("view")["targets"][0]["served_by"]["bool"], "(view)");
}

#[test]
fn ops_are_known_without_a_backend() {
    let ran = bare(&["ops"]).expect(0);
    assert!(ran.err.contains("no backend is installed"), "{}", ran.err);
    let json = bare(&["ops", "--json"]).expect(0).json();
    let add = json.as_array().unwrap().iter().find(|op| op["op"] == "add").unwrap();
    assert!(add["targets"][0]["served_by"]["f32"].is_null());
}

#[test]
fn a_key_is_explained() {
    let ran =
        keyway(&["explain", "add", "--device", "cpu", "--layout", "strided", "--dtype", "f32"]).expect(0);
    assert!(ran.out.contains("served by kernel of `keyway-cpu`"), "{}", ran.out);
    let json = keyway(&["explain", "add", "--json"]).expect(0).json();
    assert_eq!(json["candidates"][0]["chosen"], true);
    let ran = keyway(&["explain", "add", "--layout", "channels_last"]).expect(0);
    assert!(ran.out.contains("`strided` is the parent"), "{}", ran.out);
    let ran = bare(&["explain", "add"]).expect(0);
    assert!(
        ran.out.contains("nothing serves this key") && ran.out.contains("no backend for `cpu`"),
        "{}",
        ran.out
    );
}

#[test]
fn the_documentation_of_an_op_is_shown_without_a_backend() {
    let ran = bare(&["explain", "clamp", "--doc"]).expect(0);
    for part in [
        "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor\n\nClamps each element",
        "each gets half, as in\n`Tensor::maximum`.\n",
        "\n    let a = Tensor::new([-2.0f32, 0.5, 2.0])?;\n",
        "\nErrors\nNo bound at all",
        "min       Scalar or None  None",
        "forms: functional, in place, out=",
        "gradient: a formula",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    assert!(!ran.out.contains("# fn main") && !ran.out.contains("[`"), "{}", ran.out);
    let json = bare(&["explain", "clamp", "--doc", "--json"]).expect(0).json();
    assert_eq!((&json["signature"], &json["arguments"][1]["name"]), (&"Tss>T".into(), &"min".into()));
    assert_eq!(json["arguments"][1]["optional"], true);
    assert_eq!(json["arguments"][1]["meaning"], "the least result; None for no bound");
    assert!(bare(&["explain", "clamp", "--doc", "--dtype", "f32"]).expect(2).err.contains("--dtype"));
}

#[test]
fn names_that_do_not_exist_are_wrong_usage() {
    for (arguments, parts) in [
        (vec!["explain", "ad"], ["no op `ad`", "`add`"]),
        (vec!["explain", "add", "--device", "tpu"], ["no device `tpu`", "cpu"]),
        (vec!["explain", "add", "--device", "cpu:7"], ["cpu:7", "1 device"]),
        (vec!["explain", "add", "--layout", "blocked"], ["no layout `blocked`", "channels_last"]),
        (vec!["explain", "add", "--dtype", "float"], ["no dtype `float`", "bf16"]),
        (vec!["frobnicate"], ["frobnicate", "Usage"]),
        (vec!["backend"], ["list", "paths"]),
        (vec![], ["Usage", "train"]),
    ] {
        let ran = keyway(&arguments).expect(2);
        for part in parts {
            assert!(ran.err.contains(part), "{arguments:?}: {part}: {}", ran.err);
        }
        assert!(ran.out.is_empty(), "{}", ran.out);
    }
}

#[test]
fn doctor_gives_a_verdict_for_each_library() {
    let ran = keyway(&["doctor"]).expect(0);
    for part in
        ["Paths searched", "keyway-cpu", "needed, all are there", "verdict    used", "all is well: 1 usable"]
    {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let json = keyway(&["doctor", "--json"]).expect(0).json();
    assert_eq!(json["usable"], 1);
    assert_eq!(json["discovery"]["candidates"][0]["outcome"]["verdict"], "chosen");
    assert!(!json["host"]["cpu_features"].as_array().unwrap().is_empty());
    assert_eq!(json["devices"][0]["device"], "cpu");
    assert!(bare(&["doctor"]).expect(0).out.contains("Verdict: no backend is installed"));
}

#[test]
fn doctor_tells_of_a_library_whose_start_fails() {
    let mut command = program(&library_of("keyway_test_faulty"));
    command.arg("doctor").env("KEYWAY_TEST_FAULT", "panic_at_load");
    // The plugin's own standard library prints its panic, so standard error may have a panic message.
    let ran = run(command);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(
        ran.out.contains("verdict    rejected") && ran.out.contains("told to panic at load"),
        "{}",
        ran.out
    );
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut command = program(&library());
    let mut child =
        command.args(["ops", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_a_failure() {
    for arguments in [["ops"].as_slice(), &["--help"], &["--version"], &["backend", "list", "--help"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = program(&library());
        command.args(arguments).stdout(full);
        assert!(run(command).expect(1).err.contains("standard output"), "{arguments:?}");
    }
}

#[test]
fn interposers_stand_in_every_report() {
    let folder = tempfile::tempdir().unwrap();
    for library in [library(), library_of("keyway_test_interposer")] {
        std::fs::copy(&library, folder.path().join(library.file_name().unwrap())).unwrap();
    }
    let said = |arguments: &[&str]| {
        let mut command = program(folder.path());
        command.args(arguments);
        run(command).expect(0)
    };
    let listed = said(&["backend", "list"]).out;
    assert!(listed.contains("keyway.test/interposer: interposers meddler (off), watch"), "{listed}");
    let json = said(&["backend", "list", "--json"]).json();
    let all = json["backends"].as_array().unwrap();
    let of = all.iter().find(|b| b["library"]["manifest"]["name"] == "keyway.test/interposer").unwrap();
    assert_eq!(of["library"]["interposers"][1]["name"], "watch");
    assert!(said(&["doctor"]).out.contains("interposes meddler (off), watch"));
    let explained = said(&["explain", "add"]).out;
    assert!(explained.contains("interposer `watch` of `keyway.test/interposer` acts first"), "{explained}");
    assert!(!explained.contains("meddler"), "{explained}");
    assert_eq!(said(&["explain", "add", "--json"]).json()["interposers"][0]["name"], "watch");
}

#[test]
fn everything_fits_80_columns() {
    let commands: &[&[&str]] = &[
        &["backend", "list"],
        &["backend", "paths"],
        &["backend", "prefer", "nothing"],
        &["ops"],
        &["ops", "--device", "cpu", "--missing-for", "train"],
        &["ops", "--missing-for", "cook"],
        &["explain", "add"],
        &["explain", "ad"],
        &["explain", "matmul", "--layout", "channels_last", "--dtype", "i8"],
        &["explain", "add", "--dtype", "float"],
        &["doctor"],
        &["conformance", "nosuch"],
        &["conformance", "cpu", "--quick", "--op", "relu"],
        &["train", "digits", "--epochs", "1", "--profile"],
        &[
            "train",
            "digits",
            "--epochs",
            "1",
            "--model",
            "cnn",
            "--memory-format",
            "channels_last",
            "--profile",
        ],
        &["train", "digits", "--epochs", "2", "--lr", "1e30"],
        &["profile", "--help"],
        &["profile", "show", "--help"],
        &["profile", "show", "/nowhere/at/all.json"],
        &["train", "digits", "--device", "tpu"],
        &["--help"],
        &["backend", "--help"],
        &["backend", "prefer", "--help"],
        &["ops", "--help"],
        &["explain", "--help"],
        &["doctor", "--help"],
        &["conformance", "--help"],
        &["train", "--help"],
        &["train", "-h"],
        &[],
        &["frobnicate"],
        &["ops", "--backends", "/nowhere/at/all"],
    ];
    let many = tempfile::tempdir().unwrap();
    for name in ["keyway_backend_cpu", "keyway_test_interposer", "keyway_test_device", "keyway_test_csr"] {
        let library = library_of(name);
        std::fs::copy(&library, many.path().join(library.file_name().unwrap())).unwrap();
    }
    std::fs::write(many.path().join("libbad.so"), "text").unwrap();
    let none = tempfile::tempdir().unwrap();
    for folder in [many.path(), none.path()] {
        for arguments in commands {
            let mut command = program(folder);
            command.args(*arguments);
            let ran = run(command);
            for line in ran.shown.iter().flat_map(|text| text.lines()) {
                // A longer path has a line of its own; a command to be copied is not wrapped.
                let unbreakable = !line.trim().contains(' ') || line.starts_with("  again ");
                assert!(line.chars().count() <= 80 || unbreakable, "{arguments:?}: {line}");
            }
        }
    }
}

#[test]
fn a_relative_entry_of_the_environment_is_reported_where_backends_are_missing() {
    let relative = std::path::Path::new("some/where");
    let said = |arguments: &[&str], code| {
        let mut command = program(relative);
        command.args(arguments);
        run(command).expect(code)
    };
    let ran = said(&["backend", "list"], 0);
    assert!(ran.out.contains("KEYWAY_BACKEND_PATH: `some/where` ignored, not absolute"), "{}", ran.out);
    for arguments in [&["ops"][..], &["explain", "add"], &["train", "digits"]] {
        let ran = said(arguments, if arguments[0] == "train" { 1 } else { 0 });
        let warned = "warning: KEYWAY_BACKEND_PATH: `some/where` ignored, not absolute";
        assert!(ran.err.contains(warned), "{arguments:?}: {}", ran.err);
    }
    assert!(said(&["doctor"], 0).out.contains("ignored: not an absolute path"));
}

#[test]
#[cfg(target_os = "linux")]
fn names_that_are_no_utf8_do_not_break_the_reports() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join(std::ffi::OsStr::from_bytes(b"od\xffd"));
    std::fs::create_dir(&odd).unwrap();
    std::fs::write(odd.join("libbad.so"), "text").unwrap();
    std::fs::copy(library(), odd.join(std::ffi::OsStr::from_bytes(b"libgood\xfe.so"))).unwrap();
    let said = |code: i32, arguments: &[&str]| {
        let mut command = program(&odd);
        command.args(arguments);
        run(command).expect(code)
    };
    for (code, arguments) in [
        (1, &["backend", "list", "--json"][..]),
        (0, &["backend", "paths", "--json"]),
        (1, &["doctor", "--json"]),
    ] {
        let ran = said(code, arguments);
        ran.json();
        assert!(ran.out.contains("od\u{fffd}d"), "{}", ran.out);
    }
    assert_eq!(said(1, &["doctor", "--json"]).json()["usable"], 1);
    said(1, &["backend", "list"]);
    said(1, &["doctor"]);
    let summary = folder.path().join("summary.json");
    said(0, &["train", "digits", "--epochs", "1", "--json", summary.to_str().unwrap()]);
    assert!(std::fs::read_to_string(&summary).unwrap().contains("libgood\u{fffd}.so"));
}
