//! Unresolved references of plugins, and the commands' messages about them: kernels that no call reaches, preferences and
//! fallbacks without effect.

#[path = "../../plugin-sdk/tests/c_compiler/mod.rs"]
mod c_compiler;
mod support;

use std::path::Path;
use support::{Ran, library, library_of, program, run};

/// The CPU backend, and other libraries beside it.
fn folder(others: &[&Path]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for library in others.iter().copied().chain([library().as_path()]) {
        std::fs::copy(library, folder.path().join(library.file_name().unwrap())).unwrap();
    }
    folder
}

fn said(folder: &tempfile::TempDir, arguments: &[&str]) -> Ran {
    let mut command = program(folder.path());
    command.args(arguments);
    run(command).expect(0)
}

/// The CPU backend with a plugin that has this mistake. `None` without a compiler.
fn mistaken(mistake: &str) -> Option<tempfile::TempDir> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/mistaken.c");
    let name = format!("mistaken_{mistake}_{}", std::process::id());
    let built = c_compiler::plugin(&source, &name, &[&format!("-DMISTAKE={mistake}")])?;
    let made = folder(&[&built]);
    std::fs::remove_file(built).unwrap();
    Some(made)
}

#[test]
fn every_report_lists_kernels_that_no_call_reaches() {
    for (mistake, clause) in [
        ("OP_UNKNOWN", "2 kernels of op `absolut`, which does not exist (near: `abs`)"),
        ("DTYPE_UNKNOWN", "2 kernels for dtype `f23`, which no plugin brings"),
        ("DEVICE_UNKNOWN", "2 kernels for device `cuda`, which no plugin brings"),
        ("LAYOUT_UNKNOWN", "2 kernels for layout `stridden`, which no plugin brings (near: `strided`)"),
        (
            "CLAIM",
            "device `acme.example/npu` in its manifest, which no plugin brings: it brings no device, kernel or layout's \
             functions for it",
        ),
        ("TWICE", "a second kernel of `abs` for (cpu, strided, f32), asked only if the first refuses"),
        (
            "INTERPOSER",
            "`expp` in the list of interposer `watch-mistaken`: there is no such op (near: `exp`)",
        ),
        (
            "BACKWARD",
            "`mistaken_same_backwrd`, the backward op of `mistaken_same`, which does not exist \
             (near: `mistaken_same_backward`): `mistaken_same` has no gradient",
        ),
        (
            "FORMAT_OP",
            "format `channels_last` declared for `abss` on `cpu`: there is no such op (near: `abs`)",
        ),
        ("FORMAT_DEVICE", "format `channels_last` declared for `abs` on `cuda`: no plugin brings the device"),
        (
            "FORMAT_LAYOUT",
            "format `channels_lost` declared for `abs` on `cpu`: no plugin brings the layout (near: `channels_last`)",
        ),
        (
            "FORMAT_KERNEL",
            "format `channels_last` declared for `exp` on `cpu`: the plugin has no kernel of it there",
        ),
    ] {
        let Some(folder) = mistaken(mistake) else { return };
        let effect = format!("without effect: {clause}");
        let warned = format!("warning: `keyway.test/mistaken`: {effect}");
        let listed = said(&folder, &["backend", "list"]);
        assert!(listed.out.contains(&format!(".so: {effect}")), "{}", listed.out);
        assert_eq!(listed.out.contains("used, no kernel"), mistake == "OP_UNKNOWN", "{}", listed.out);
        let report = said(&folder, &["doctor"]);
        assert!(report.out.contains(&format!("no effect  {clause}")), "{}", report.out);
        assert_eq!(said(&folder, &["ops"]).err.matches(&warned).count(), 1, "{mistake}");
        let json = said(&folder, &["backend", "list", "--json"]).json();
        let all = json["backends"].as_array().unwrap();
        let of = |name: &str| all.iter().find(|b| b["library"]["manifest"]["name"] == name).unwrap();
        assert_eq!(of("keyway.test/mistaken")["without_effect"][0], clause);
        assert_eq!(of("keyway-cpu")["without_effect"].as_array().unwrap().len(), 0);
        let json = said(&folder, &["doctor", "--json"]).json();
        assert_eq!(json["without_effect"][0][1][0], clause);
    }
    // There is no message for a plugin without mistakes, nor for kernels of a device that another plugin provides.
    let Some(folder) = mistaken("NONE") else { return };
    let ran = said(&folder, &["backend", "list"]);
    assert!(!ran.out.contains("without effect") && ran.err.is_empty(), "{}{}", ran.out, ran.err);
}

#[test]
fn a_declaration_that_is_not_valid_is_ignored_with_a_warning() {
    for (mistake, clause) in [
        (
            "FORMAT_COST",
            "cost NaN declared for `abs` on `cpu` in `channels_last`: expected 0.001 to 1000, the time relative to row-major order",
        ),
        (
            "FORMAT_ROW_MAJOR",
            "format `strided` declared for `abs` on `cpu`: costs are relative to row-major order, which has none itself",
        ),
        (
            "FORMAT_TWICE",
            "a second cost, 0.6, declared for `abs` on `cpu` in `channels_last`: the first, 0.5, is used",
        ),
    ] {
        let Some(folder) = mistaken(mistake) else { return };
        let listed = said(&folder, &["backend", "list"]);
        assert!(listed.out.contains(&format!("without effect: {clause}")), "{}", listed.out);
        assert!(!listed.out.contains("quarantined") && !listed.err.contains("quarantined"), "{}", listed.out);
        let err = said(&folder, &["ops"]).err;
        assert!(
            err.contains("warning: `keyway.test/mistaken`: without effect") && err.contains(clause),
            "{err}"
        );
        let list = said(&folder, &["backend", "list", "--json"]).json();
        let all = list["backends"].as_array().unwrap();
        let of = all.iter().find(|b| b["library"]["manifest"]["name"] == "keyway.test/mistaken").unwrap();
        assert_eq!(of["outcome"]["verdict"], "chosen", "{of}");
    }
}

#[test]
fn the_declared_times_of_all_plugins_are_listed() {
    let Some(folder) = mistaken("FORMAT_TWICE") else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/mistaken.c");
    let flags = ["-DMISTAKE=FORMAT_TWICE", "-DNAME=\"keyway.test/other\"", "-DVERSION=\"0.0.1\""];
    let Some(built) = c_compiler::plugin(&source, &format!("other_{}", std::process::id()), &flags) else {
        return;
    };
    std::fs::copy(&built, folder.path().join("libother.so")).unwrap();
    std::fs::remove_file(built).unwrap();
    let ran = said(&folder, &["explain", "abs"]);
    assert_eq!(ran.out.matches("declares channels_last: 0.5 times the time").count(), 2, "{}", ran.out);
    assert_eq!(ran.out.matches("not used, since").count(), 1, "{}", ran.out);
    let json = said(&folder, &["explain", "abs", "--json"]).json();
    let used: Vec<bool> =
        json["preferences"].as_array().unwrap().iter().map(|p| p["used"].as_bool().unwrap()).collect();
    assert_eq!(used, [true, false]);
}

#[test]
fn a_library_that_takes_another_name_is_reported() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/mistaken.c");
    let flags = ["-DMISTAKE=NONE", "-DNAME=\"keyway-cpu\"", "-DVERSION=\"99.0.0\""];
    let name = format!("mistaken_name_{}", std::process::id());
    let Some(built) = c_compiler::plugin(&source, &name, &flags) else { return };
    let folder = folder(&[&built]);
    std::fs::remove_file(built).unwrap();
    for arguments in [["backend", "list"].as_slice(), &["doctor"]] {
        let ran = said(&folder, arguments);
        for part in ["another library is named `keyway-cpu` too and is used, without", "a name of its own"] {
            assert!(ran.out.contains(part), "{part}: {}", ran.out);
        }
    }
}

#[test]
fn a_path_of_the_environment_that_does_not_exist_is_reported() {
    for arguments in [["backend", "list"].as_slice(), &["doctor"]] {
        let mut command = program(Path::new("/nowhere/at/all"));
        command.args(arguments);
        let out = run(command).expect(0).out;
        assert!(out.contains("KEYWAY_BACKEND_PATH: nothing is at `/nowhere/at/all`; correct"), "{out}");
    }
    let mut command = program(&library());
    command.args(["conformance", "--library", "/nowhere/libnone.so"]);
    let err = run(command).expect(2).err;
    assert!(err.contains("--library /nowhere/libnone.so: there is no such file"), "{err}");
}

#[test]
fn a_kernel_for_an_unknown_device_serves_nothing() {
    let Some(folder) = mistaken("DEVICE_UNKNOWN") else { return };
    let ran = said(&folder, &["explain", "abs", "--device", "cuda"]);
    for part in ["nothing serves this key", "no plugin brings the device `cuda`", "no backend for `cuda`"] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let json = said(&folder, &["ops", "--json"]).json();
    let abs = json.as_array().unwrap().iter().find(|op| op["op"] == "abs").unwrap();
    let target = abs["targets"].as_array().unwrap().iter().find(|target| target["device"] == "cuda").unwrap();
    assert!(target["served_by"]["f32"].is_null(), "{target}");
}

#[test]
fn a_fallback_to_an_unknown_device_serves_nothing() {
    let folder = folder(&[&library_of("keyway_test_device")]);
    let explained = |policy: &str| {
        said(&folder, &["--fallback", policy, "explain", "ge", "--device", "test.keyway/remote"])
    };
    let ran = explained("gpu");
    for part in [
        "nothing serves this key",
        "fallback to `gpu`: the device's policy names it, but no backend for `gpu` is installed",
        "change the policy with `--fallback`",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let warned = "warning: --fallback gpu: no backend for `gpu` is installed, so calls that fall back to it fail; \
                  a fallback can be: cpu";
    assert!(ran.err.contains(warned), "{}", ran.err);
    let ran = explained("cpu");
    assert!(ran.out.contains("served by fallback to `cpu`") && ran.err.is_empty(), "{}{}", ran.out, ran.err);
    let mut command = program(folder.path());
    command.args(["ops"]).env("KEYWAY_FALLBACK", "cpuu:allow");
    let ran = run(command).expect(0);
    assert!(ran.err.contains("warning: KEYWAY_FALLBACK: no backend for `cpuu` is installed"), "{}", ran.err);
    let help = said(&folder, &["--help"]).out;
    assert!(help.contains("any device that a backend brings"), "{help}");
}

#[test]
fn a_preference_is_the_reason_where_it_decides() {
    let Some(folder) = mistaken("NONE") else { return };
    let explained = |arguments: &[&str]| said(&folder, &[arguments, &["explain", "abs"]].concat()).out;
    let usual = explained(&[]);
    assert!(usual.contains("was found first") && !usual.contains("preferred"), "{usual}");
    for (preferred, other) in [("keyway-cpu", "keyway.test/mistaken"), ("keyway.test/mistaken", "keyway-cpu")]
    {
        let out = explained(&["--backend", preferred]);
        assert!(out.contains(&format!("served by kernel of `{preferred}`")), "{out}");
        assert!(out.contains("serves, the exact key; its plugin is preferred"), "{out}");
        let lost = out.lines().find(|line| line.contains(&format!("2. kernel of `{other}`"))).unwrap();
        assert!(
            lost.ends_with(&format!("asked if those before refuse: `{preferred}` is preferred")),
            "{out}"
        );
    }
    // A stored preference has the same effect.
    let config = tempfile::tempdir().unwrap();
    let with_preferences = |arguments: &[&str]| {
        let mut command = program(folder.path());
        command.args(arguments).env("XDG_CONFIG_HOME", config.path());
        run(command).expect(0).out
    };
    with_preferences(&["backend", "prefer", "keyway.test/mistaken"]);
    let out = with_preferences(&["explain", "abs"]);
    assert!(out.contains("`keyway.test/mistaken` is preferred"), "{out}");
    // It has no kernel of this op.
    let note =
        "`keyway.test/mistaken` is preferred, but no kernel of it serves this key: that has no effect here";
    let out = with_preferences(&["explain", "add"]);
    assert!(out.contains(note), "{out}");
    assert!(!with_preferences(&["--backend", "keyway-cpu", "explain", "abs"]).contains("has no effect"));
}
