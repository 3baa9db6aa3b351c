//! Trials that cannot run: without `keyway-probe` libraries are loaded with a warning; where it exists and cannot work, a
//! library that is not known good is refused.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::corpus::{Corpus, file};
use support::{library, run};

#[test]
fn without_a_probe_libraries_are_loaded_with_one_warning() {
    let corpus = Corpus::new(&["never:nothing"]);
    std::fs::copy(library(), corpus.folder.path().join("libsound.so")).unwrap();
    let with = |probe: &Path| {
        let mut command = corpus.command(&["doctor"]);
        command.env("KEYWAY_PROBE", probe);
        run(command).expect(0)
    };
    let missing = "/nowhere/keyway-probe";
    let ran = with(Path::new(missing));
    assert_eq!(ran.err.matches("without a trial").count(), 1, "{}", ran.err);
    assert!(ran.err.contains(missing) && ran.out.contains("all is well: 2 usable"), "{}", ran.out);
    assert_eq!(with(Path::new("off")).err, "", "who says so is not warned");
    let ran = corpus.run(&["doctor"]).expect(0);
    assert_eq!(ran.err, "");
    assert_eq!(with(Path::new("/nowhere/keyway-probe")).err, "", "they are known now");
}

#[test]
fn what_is_no_probe_is_asked_once() {
    let corpus = Corpus::new(&["never:a", "never:b", "never:c"]);
    let (probe, asked) = (corpus.state.path().join("hangs"), corpus.state.path().join("asked"));
    std::fs::write(&probe, format!("#!/bin/sh\necho asked >> {}\nsleep 60\n", asked.display())).unwrap();
    std::fs::set_permissions(&probe, PermissionsExt::from_mode(0o700)).unwrap();
    for arguments in [["explain", "add"].as_slice(), &["backend", "verify"]] {
        let _ = std::fs::remove_file(&asked);
        let mut command = corpus.command(arguments);
        command.env("KEYWAY_PROBE", &probe).env("KEYWAY_PROBE_SECONDS", "1");
        let ran = run(command);
        assert!(ran.err.contains("did not end within 1 s"), "{arguments:?}: {}", ran.err);
        assert_eq!(std::fs::read_to_string(&asked).unwrap(), "asked\n", "{arguments:?}");
    }
}

#[test]
fn a_probe_that_cannot_work_refuses_what_is_not_known_good() {
    let corpus = Corpus::new(&["setup:abort"]);
    let plain = corpus.state.path().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    let others = corpus.state.path().join("others");
    std::fs::write(&others, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&others, PermissionsExt::from_mode(0o777)).unwrap();
    for (probe, part) in [
        (Path::new("/bin/true"), "should say that it is of host"),
        (&support::executable(), "is this program itself"),
        (&plain, "cannot be started"),
        (&others, "not trusted"),
    ] {
        for (arguments, code) in [(["backend", "list"].as_slice(), 1), (&["ops"], 0)] {
            let mut command = corpus.command(arguments);
            command.env("KEYWAY_PROBE", probe);
            let ran = run(command).expect(code);
            let said = [ran.out, ran.err].concat();
            for part in [&file("setup:abort"), part, probe.to_str().unwrap(), "KEYWAY_PROBE=off"] {
                assert!(said.contains(part), "{arguments:?}: `{part}` is missing in: {said}");
            }
        }
    }
    assert_eq!(corpus.records(), 0, "it does not describe the library");
}

/// A command with resource limits of the shell.
fn limited(limits: &str, of: &Command) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("{limits} && exec \"$0\" \"$@\"")]);
    command.arg(of.get_program()).args(of.get_args()).stdin(Stdio::null());
    for (name, value) in of.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

#[test]
fn few_open_files_are_enough_for_a_trial() {
    for files in [100, 64, 32] {
        let corpus = Corpus::new(&["setup:abort", "never:nothing"]);
        let ran =
            run(limited(&format!("ulimit -n {files}"), &corpus.command(&["backend", "list"]))).expect(1);
        assert!(ran.out.contains("quarantined because it was ended by SIGABRT"), "{files}: {}", ran.out);
        assert!(ran.out.contains("1 library") || ran.err.contains("1 library"), "{files}: {}", ran.err);
    }
}

/// A reader of the program's output need not wait for a helper process that a plugin has forked.
#[test]
fn a_helper_that_outlives_the_program_blocks_no_caller() {
    let corpus = Corpus::new(&["setup:helper"]);
    let begun = Instant::now();
    let output = corpus.command(&["ops"]).stderr(Stdio::null()).output().unwrap();
    assert!(output.status.success() && !output.stdout.is_empty());
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}
