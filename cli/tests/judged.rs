//! The output of `keyway conformance` where a run proves little about a library, where the library registers more than can be
//! called, and the later state of the certificate.

#[path = "../../plugin-sdk/tests/c_compiler/mod.rs"]
mod c_compiler;
mod support;

use keyway_conformance::certificate::Certificate;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Ran, library, program, run};

/// A library with a kernel of `abs`, in its own folder, which only the owner may write.
struct Built {
    folder: tempfile::TempDir,
    file: PathBuf,
}

impl Built {
    /// Builds with these compiler flags. `None` without a compiler.
    fn new(flags: &[&str]) -> Option<Built> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/abs.c");
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().file_name().unwrap().to_string_lossy().replace('.', "");
        let built = c_compiler::plugin(&source, &format!("abs_{name}"), flags)?;
        let file = folder.path().join("libabs.so");
        std::fs::copy(&built, &file).unwrap();
        std::fs::remove_file(built).unwrap();
        Some(Built { folder, file })
    }

    /// Judges it beside the CPU backend.
    fn judge(&self, arguments: &[&str]) -> Ran {
        let mut command = program(&library());
        command.args(["conformance", "--library"]).arg(&self.file).args(arguments);
        run(command)
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_string()
    }

    /// Judges it with all reports, and returns the JSON and the page.
    fn reports(&self, arguments: &[&str]) -> (Ran, Value, String) {
        let (json, html) = (self.path("r.json"), self.path("r.html"));
        let ran = self.judge(&[arguments, &["--json", &json, "--html", &html]].concat());
        let text = std::fs::read_to_string(json).unwrap();
        (ran, serde_json::from_str(&text).unwrap(), std::fs::read_to_string(html).unwrap())
    }

    fn standing(&self, folder: &Path) -> String {
        Built::standing_by(folder, program(folder))
    }

    /// As on another machine, without a verdict of its own.
    fn standing_elsewhere(&self, folder: &Path) -> String {
        let state = tempfile::tempdir().unwrap();
        let mut command = program(folder);
        command.env("XDG_STATE_HOME", state.path());
        Built::standing_by(folder, command)
    }

    fn standing_by(folder: &Path, mut command: Command) -> String {
        command.args(["backend", "list", "--json"]);
        let list = run(command).expect(0).json();
        assert_eq!(list["backends"].as_array().unwrap().len(), 1, "{}", folder.display());
        list["backends"][0]["conformance"].as_str().unwrap().to_string()
    }

    fn certificate(&self) -> PathBuf {
        Certificate::beside(&self.file)
    }
}

#[test]
fn a_run_without_a_case_of_the_library_is_a_failure() {
    let Some(built) = Built::new(&[]) else { return };
    let (ran, _, html) = built.reports(&["--op", "abs", "--dtype", "f64"]);
    let ran = ran.expect(1);
    let text = "no case was served by keyway.test/abs: this run";
    assert!(ran.out.contains(text) && ran.err.contains(text), "{}\n{}", ran.out, ran.err);
    assert!(ran.err.contains("does not test it"), "{}", ran.err);
    assert!(!ran.out.contains("every one as expected"), "{}", ran.out);
    assert!(html.contains("\"green\":false") && html.contains("\"says_nothing\":true"));
}

#[test]
fn a_narrowed_run_says_so() {
    let Some(built) = Built::new(&[]) else { return };
    let (ran, _, html) = built.reports(&["--op", "abs", "--dtype", "f32"]);
    let ran = ran.expect(0);
    let text = "narrowed to op abs, dtype f32: not the whole suite";
    assert!(ran.out.contains("every one as expected") && ran.out.contains(text), "{}", ran.out);
    assert!(html.contains(&format!("\"narrowed\":\"{text}\"")));
    let ran = built.judge(&["--quick"]).expect(0);
    assert!(ran.out.contains("narrowed to the quick cases: not the whole suite"), "{}", ran.out);
}

#[test]
fn what_is_registered_without_effect_is_a_failure_that_names_it() {
    for (flag, id, clause) in [
        ("TWICE", "claims/abs/without_effect", "a second kernel of `abs` for (cpu, strided, f32)"),
        (
            "SIGNATURE",
            "claims/neg/without_effect",
            "kernels of `neg` written against signature TT>T, which is T>T here",
        ),
        ("UNKNOWN", "claims/absolut/without_effect", "1 kernel of op `absolut`, which does not exist"),
    ] {
        let Some(built) = Built::new(&[&format!("-D{flag}")]) else { return };
        let (ran, report, _) = built.reports(&["--family", "claims"]);
        let ran = ran.expect(1);
        let bad = |case: &&Value| case["status"] == "failed";
        let bad: Vec<&Value> = report["cases"].as_array().unwrap().iter().filter(bad).collect();
        let [row] = bad[..] else { panic!("{bad:?}") };
        assert_eq!(row["id"], id);
        assert!(row["failure"]["got"].as_str().unwrap().contains(clause), "{row}");
        assert!(ran.out.contains(clause) && ran.out.contains("has no effect"), "{}", ran.out);
        // `--op` with that op's name selects it, also where the op does not exist.
        if flag == "TWICE" {
            assert!(built.judge(&["--op", "abs"]).expect(1).out.contains(id));
        }
        // A list of known failures may accept it.
        let known = built.path("known.toml");
        std::fs::write(&known, format!("[[known]]\ncase = \"{id}\"\nreason = \"meant for another\"\n"))
            .unwrap();
        built.judge(&["--family", "claims", "--known", &known]).expect(0);
    }
}

#[test]
fn only_the_usual_seed_leaves_a_certificate() {
    let Some(built) = Built::new(&[]) else { return };
    let ran = built.judge(&["--seed", "7"]).expect(0);
    assert!(ran.out.contains("no certificate: this run is on the values of seed 7"), "{}", ran.out);
    // Nor do calls drawn from a given seed.
    let ran = built.judge(&["--seed", "0"]).expect(0);
    assert!(ran.out.contains("no certificate: this run is on the calls that seed 0 draws"), "{}", ran.out);
    assert!(!built.certificate().exists());
    let ran = built.judge(&[]).expect(0);
    assert!(!ran.out.contains("narrowed") && ran.out.contains("wrote the certificate"), "{}", ran.out);
    assert!(built.certificate().exists());
}

#[test]
fn an_installed_library_keeps_its_certificate() {
    let Some(built) = Built::new(&[]) else { return };
    built.judge(&[]).expect(0);
    let judged = built.standing(&built.file);
    assert!(judged.starts_with("certified "), "{judged}");
    // Installs from the file, from the folder, and from an archive.
    let archive = built.path("all.tar");
    let mut builder = tar::Builder::new(std::fs::File::create(&archive).unwrap());
    for file in [&built.file, &built.certificate()] {
        builder.append_path_with_name(file, file.file_name().unwrap()).unwrap();
    }
    builder.finish().unwrap();
    let installed = |source: &str| {
        let into = tempfile::tempdir().unwrap();
        let mut command = program(Path::new("/nowhere/at/all"));
        command.args(["backend", "install", source, "--dir", into.path().to_str().unwrap()]);
        run(command).expect(0);
        [built.standing(into.path()), built.standing_elsewhere(into.path())]
    };
    let (file, folder) = (built.path("libabs.so"), built.path(""));
    for source in [&file, &folder, &archive] {
        // A run on this machine is a verdict; elsewhere it is the claim of a file that anybody could have typed.
        assert_eq!(installed(source), [judged.clone(), format!("claim: {judged}")], "{source}");
    }
    // A certificate that other users may write, or of another content, is not copied.
    let mode = |mode| std::fs::set_permissions(built.certificate(), std::fs::Permissions::from_mode(mode));
    mode(0o666).unwrap();
    for source in [&file, &folder] {
        assert_eq!(installed(source), [judged.clone(), "never run".to_string()], "{source}");
    }
    mode(0o600).unwrap();
    let mut library = std::fs::OpenOptions::new().append(true).open(&built.file).unwrap();
    std::io::Write::write_all(&mut library, b"\0").unwrap();
    assert_eq!(installed(&file), ["never run", "never run"]);
}

#[test]
fn a_backend_that_failed_here_is_used_with_a_warning_and_refused_on_request() {
    let Some(built) = Built::new(&["-DTWICE"]) else { return };
    let state = tempfile::tempdir().unwrap();
    let run_with = |arguments: &[&str], policy: &str| {
        let beside = if arguments[0] == "conformance" { library() } else { built.file.clone() };
        let mut command = program(&beside);
        command.args(arguments).env("XDG_STATE_HOME", state.path()).env("KEYWAY_CERTIFICATES", policy);
        run(command)
    };
    let refused = run_with(&["backend", "list"], "require-certificate").expect(1);
    assert!(refused.out.contains("was not judged here"), "{}", refused.out);
    let judge = ["conformance", "keyway.test/abs", "--library", built.file.to_str().unwrap()];
    // A library that the policy refuses may still be judged.
    run_with(&judge, "require-certificate").expect(1);
    let warned = run_with(&["explain", "abs"], "").expect(0);
    assert!(
        warned.err.contains("keyway.test/abs 0.0.1") && warned.err.contains("failed the conformance suite")
    );
    assert!(!run_with(&["explain", "abs"], "off").expect(0).err.contains("conformance suite"));
    let refused = run_with(&["backend", "list"], "require-certificate").expect(1);
    assert!(refused.out.contains("got one that failed it"), "{}", refused.out);
    let wrong = run_with(&["backend", "list"], "never");
    assert!(wrong.out.contains("KEYWAY_CERTIFICATES: `never` ignored"), "{}", wrong.out);
}

#[test]
fn a_wrong_answer_that_depends_on_earlier_calls_says_so() {
    let Some(built) = Built::new(&["-DTIRING=60"]) else { return };
    let (ran, report, html) = built.reports(&["--op", "abs", "--dtype", "f32", "--jobs", "1"]);
    let ran = ran.expect(1);
    let text = "alone in a fresh process it passed: it depends on what ran before";
    assert!(ran.out.contains(text) && html.contains(text), "{}", ran.out);
    let failed = report["cases"].as_array().unwrap().iter().filter(|case| case["status"] == "failed");
    let matching: Vec<bool> = failed.map(|case| case["reason"].to_string().contains(text)).collect();
    assert!(matching.len() > 10, "{matching:?}");
    assert_eq!(matching.iter().filter(|matching| **matching).count(), 5, "{matching:?}");
}

#[test]
fn two_builds_of_one_version_in_a_folder_are_not_guessed_between() {
    let (Some(one), Some(other)) = (Built::new(&[]), Built::new(&["-DTWICE"])) else { return };
    let into = tempfile::tempdir().unwrap();
    let install = || {
        let mut command = program(Path::new("/nowhere/at/all"));
        command.args(["backend", "install", &one.path(""), "--dir", into.path().to_str().unwrap()]);
        run(command)
    };
    std::fs::copy(&other.file, one.path("libother.so")).unwrap();
    let ran = install().expect(1);
    for part in ["libabs.so", "libother.so", "name the file to install"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    // Two files of one content count as one.
    std::fs::copy(&one.file, one.path("libother.so")).unwrap();
    install().expect(0);
    let mut command = program(into.path());
    command.args(["backend", "verify", "abs"]);
    let ran = run(command).expect(2);
    assert!(ran.err.contains("did you mean `keyway.test/abs`?"), "{}", ran.err);
}
