//! Libraries that end, hang or mislead their process: none of them ends the command, each is named, and each is remembered.

mod support;

use std::path::Path;
use support::corpus::{Corpus, file, verdict};
use support::{Ran, library, library_of, program, run};

/// Time limit, in seconds, where a library is meant to hang.
const SHORT: &str = "4";

/// Behaviours that kill or end a process, each with a word of the reported reason.
const FATAL: [(&str, &str); 67] = [
    ("ctor:abort", "SIGABRT"),
    ("ctor:exit0", "exit code 0"),
    ("ctor:exit42", "exit code 42"),
    ("ctor:quit0", "exit code 0"),
    ("ctor:illegal", "SIGILL"),
    ("ctor:segfault", "SIGSEGV"),
    ("ctor:overflow", "opened and set up"),
    ("ctor:kill", "SIGKILL"),
    ("ctor:panic", "SIGABRT"),
    ("ctor:exec", "exit code 0"),
    ("setup:abort", "SIGABRT"),
    ("setup:exit0", "exit code 0"),
    ("setup:exit1", "exit code 1"),
    ("setup:exit42", "exit code 42"),
    ("setup:quit0", "exit code 0"),
    ("setup:overflow", "opened and set up"),
    ("setup:illegal", "SIGILL"),
    ("setup:bus", "SIGBUS"),
    ("setup:float", "SIGFPE"),
    ("setup:trap", "SIGTRAP"),
    ("setup:kill", "SIGKILL"),
    ("setup:terminate", "SIGTERM"),
    ("setup:hangup", "signal 1"),
    ("setup:segfault", "SIGSEGV"),
    ("setup:panic_twice", "SIGABRT"),
    ("setup:exec", "exit code 0"),
    ("setup:fake", "exit code 0"),
    ("count:abort", "devices were counted"),
    ("count:exit0", "devices were counted"),
    ("count:exit42", "exit code 42"),
    ("count:quit0", "devices were counted"),
    ("count:overflow", "devices were counted"),
    ("count:illegal", "SIGILL"),
    ("count:segfault", "SIGSEGV"),
    ("count:kill", "SIGKILL"),
    ("count:panic_twice", "SIGABRT"),
    ("name:abort", "devices were counted"),
    ("name:exit0", "devices were counted"),
    ("name:exit1", "exit code 1"),
    ("name:segfault", "SIGSEGV"),
    ("name:illegal", "SIGILL"),
    ("later:abort", "SIGABRT"),
    ("later:exit0", "exit code 0"),
    ("later:quit0", "exit code 0"),
    ("later:segfault", "SIGSEGV"),
    ("later:illegal", "SIGILL"),
    ("late:abort", "SIGABRT"),
    ("late:exit0", "exit code 0"),
    ("late:quit0", "exit code 0"),
    ("slot:memory_stats", "the functions of its devices were called"),
    ("slot:synchronize", "SIGSEGV"),
    ("slot:empty_cache", "SIGSEGV"),
    ("slot:extension", "SIGSEGV"),
    ("slot:copy_between", "SIGSEGV"),
    ("slot:free", "SIGSEGV"),
    ("exit:abort", "the process ended"),
    ("exit:segfault", "the process ended"),
    ("exit:illegal", "the process ended"),
    ("exit:kill", "the process ended"),
    ("exit:quit0", "exit code 0"),
    ("exit:exit0", "exit code 0"),
    ("dtor:quit0", "exit code 0"),
    ("dtor:segfault", "the process ended"),
    ("wrong:two_layouts", "declares it twice"),
    ("wrong:two_ops", "unruly_twice"),
    ("wrong:schema", "this is no schema"),
    ("wrong:no_name", "a `name`"),
];

#[test]
fn what_kills_its_process_is_quarantined() {
    let kinds: Vec<&str> = FATAL.iter().map(|(how, _)| *how).collect();
    let corpus = Corpus::new(&kinds);
    // One library in the folder is sound.
    std::fs::copy(library(), corpus.folder.path().join("libsound.so")).unwrap();
    let first = corpus.run(&["doctor", "--json"]);
    assert_eq!(first.code, Some(1), "{}\n{}", first.out, first.err);
    let check = |report: &serde_json::Value| {
        for (how, part) in FATAL {
            let (verdict, message) = verdict(report, how);
            assert!(
                verdict == "rejected" && message.contains("quarantined because"),
                "{how}: {verdict}: {message}"
            );
            assert!(message.contains(part) && message.contains("keyway backend verify"), "{how}: {message}");
        }
        assert_eq!(verdict(report, "sound").0, "chosen");
    };
    let report = first.json();
    check(&report);
    assert_eq!(report["usable"], 1);
    assert_eq!(corpus.records(), FATAL.len(), "one record for each");

    // No library is tried a second time: a probe that cannot work has no effect.
    for arguments in [["doctor", "--json"].as_slice(), &["backend", "list", "--json"]] {
        let mut command = corpus.command(arguments);
        command.env("KEYWAY_PROBE", "/bin/false");
        let ran = run(command).expect(1);
        assert!(!ran.err.contains("warning"), "{}", ran.err);
        check(&ran.json());
    }
    // The commands that work continue with the sound libraries.
    for arguments in [["ops"].as_slice(), &["explain", "add"]] {
        // Standard error of some trials has a panic message, which `expect` would take for the command's own.
        let ran = corpus.run(arguments);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert!(
            ran.out.contains("keyway-cpu") && ran.err.contains("libsetup-abort"),
            "{}\n{}",
            ran.out,
            ran.err
        );
    }
}

#[test]
fn what_hangs_is_ended_at_the_time_limit() {
    let kinds = ["ctor:hang", "setup:hang", "setup:spin", "count:hang", "name:spin", "exit:hang"];
    let corpus = Corpus::new(&kinds);
    let mut command = corpus.command(&["doctor", "--json"]);
    command.env("KEYWAY_PROBE_SECONDS", SHORT);
    let report = run(command).expect(1).json();
    for how in kinds {
        let (verdict, message) = verdict(&report, how);
        assert!(verdict == "rejected" && message.contains("did not end within 4 s"), "{how}: {message}");
    }
    let record =
        std::fs::read_dir(corpus.state.path().join("keyway/quarantine")).unwrap().next().unwrap().unwrap();
    let text = std::fs::read_to_string(record.path()).unwrap();
    assert!(text.contains("\"cause\": \"hang\"") && text.contains("\"holds_while\": \"system"), "{text}");
    // On a machine in another state it is tried again, and a library that no longer hangs is used.
    for entry in std::fs::read_dir(record.path().parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once("\"holds_while\": \"").unwrap();
        std::fs::write(&path, format!("{before}\"holds_while\": \"other {rest}")).unwrap();
    }
    std::fs::remove_file(corpus.path("setup:hang")).unwrap();
    let mut command = corpus.command(&["doctor"]);
    command.env("KEYWAY_PROBE_SECONDS", "1");
    assert!(run(command).expect(1).out.contains("did not end within 1 s"));
}

#[test]
fn what_a_plugin_refuses_in_order_is_reported_each_time_and_never_recorded() {
    let kinds = [
        "setup:panic",
        "setup:error",
        "setup:escape",
        "count:panic",
        "count:error",
        "name:panic",
        "setup:flood",
    ];
    let corpus = Corpus::new(&kinds);
    for _ in 0..2 {
        let ran = corpus.run(&["doctor", "--json"]);
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        let report = ran.json();
        for (how, part) in
            [("setup:panic", "told to panic"), ("setup:error", "told to fail"), ("setup:escape", "gone")]
        {
            let (verdict, message) = verdict(&report, how);
            assert!(
                verdict == "rejected" && message.contains(part) && !message.contains("quarantine"),
                "{how}: {message}"
            );
        }
        for how in ["count:panic", "count:error", "name:panic", "setup:flood"] {
            assert_eq!(verdict(&report, how).0, "chosen", "{how}: {:?}", verdict(&report, how));
        }
        assert_eq!(corpus.records(), 0);
    }
    let ran = corpus.run(&["doctor"]);
    assert!(!ran.out.contains(['\u{1b}', '\u{9b}', '\r']), "{:?}", ran.out);
}

#[test]
fn what_was_refused_in_the_trial_is_not_loaded_to_hear_why() {
    let corpus = Corpus::new(&["setup:two_faced"]);
    std::fs::copy(library(), corpus.folder.path().join("libsound.so")).unwrap();
    for _ in 0..2 {
        let report = corpus.run(&["doctor", "--json"]).expect(1).json();
        let (verdict, message) = verdict(&report, "setup:two_faced");
        assert!(verdict == "rejected" && message.contains("told to fail"), "{verdict}: {message}");
        assert_eq!(report["usable"], 1);
    }
    assert_eq!(corpus.records(), 0);
}

#[test]
fn a_trial_that_ends_the_program_is_remembered_by_the_next() {
    let corpus = Corpus::new(&["ctor:parent"]);
    std::fs::copy(library(), corpus.folder.path().join("libsound.so")).unwrap();
    // A single failure may be an interrupt.
    for _ in 0..2 {
        assert_eq!(corpus.run(&["doctor", "--json"]).code, None, "it was killed");
    }
    for _ in 0..2 {
        let report = corpus.run(&["doctor", "--json"]).expect(1).json();
        let (verdict, message) = verdict(&report, "ctor:parent");
        assert!(
            verdict == "rejected"
                && message.contains("a trial of it ended the program that ran it")
                && message.contains("keyway backend verify"),
            "{verdict}: {message}"
        );
        assert_eq!(report["usable"], 1);
        assert_eq!(corpus.records(), 1);
    }
}

#[test]
fn a_library_that_ends_the_program_makes_no_success_of_it() {
    let corpus = Corpus::new(&["setup:exit_in_use"]);
    let ran = corpus.run(&["explain", "add"]).expect(1);
    let library = corpus.path("setup:exit_in_use");
    for part in [
        library.to_str().unwrap(),
        "ended the program while it was loaded",
        "disable keyway.test/unruly-000`",
    ] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    assert!(!ran.err.contains("backend list"), "it would end as well: {}", ran.err);
    corpus.run(&["backend", "disable", "keyway.test/unruly-000"]).expect(0);
    corpus.run(&["backend", "list"]).expect(0);
}

#[test]
fn a_report_asks_no_device_that_the_program_did_not_use() {
    let corpus = Corpus::new(&["slot:in_use"]);
    std::fs::copy(library(), corpus.folder.path().join("libsound.so")).unwrap();
    let ran = corpus.run(&["train", "digits", "--model", "mlp", "--epochs", "1"]).expect(0);
    assert!(ran.out.contains("MB"), "the memory of the CPU is reported: {}", ran.out);
}

#[test]
fn a_destructor_makes_no_success_of_a_failure() {
    for how in ["exit:quit0_in_use", "dtor:quit0_in_use"] {
        let corpus = Corpus::new(&[how]);
        std::fs::copy(library(), corpus.folder.path().join("libsound.so")).unwrap();
        let ran =
            corpus.run(&["train", "digits", "--model", "mlp", "--epochs", "1", "--lr", "1e30"]).expect(1);
        assert!(ran.err.contains("diverged"), "{how}: {}", ran.err);
        let ran = corpus.run(&["train", "digits", "--device", "nosuch"]).expect(2);
        assert!(ran.err.contains("nosuch"), "{how}: {}", ran.err);
        corpus.run(&["backend", "list", "--backends", "/nowhere"]).expect(1);
        // A recorded success stays a success.
        assert!(corpus.run(&["explain", "add"]).expect(0).out.contains("keyway-cpu"), "{how}");
    }
}

#[test]
fn what_is_sound_in_its_trial_and_ends_programs_is_quarantined_after_the_second() {
    for how in ["setup:abort_in_use", "setup:exit_in_use"] {
        let corpus = Corpus::new(&[how]);
        std::fs::copy(library(), corpus.folder.path().join("libsound.so")).unwrap();
        for _ in 0..2 {
            let ran = corpus.run(&["explain", "add"]);
            assert_ne!(ran.code, Some(0), "{how}: {}", ran.out);
        }
        for _ in 0..2 {
            let ran = corpus.run(&["explain", "add"]).expect(0);
            assert!(ran.out.contains("keyway-cpu"), "{how}: {}", ran.out);
            for part in [&file(how), "two programs ended while they loaded it", "keyway backend verify"] {
                assert!(ran.err.contains(part), "{how}: `{part}` is missing in: {}", ran.err);
            }
            assert_eq!(corpus.records(), 1, "{how}: the mark is gone, the record is there");
        }
        // As after a verification by hand: it is tried again, and two more programs may end.
        corpus.run(&["backend", "verify"]).expect(0);
        assert_eq!(corpus.records(), 0, "{how}");
    }
}

#[test]
fn what_a_program_has_loaded_well_leaves_no_mark() {
    let corpus = Corpus::new(&["never:nothing"]);
    let known = || std::fs::read_to_string(corpus.state.path().join("keyway/verified.json")).unwrap();
    corpus.run(&["explain", "add"]);
    let first = known();
    assert!(first.contains("\"loaded\":[{") && corpus.records() == 0, "{first}");
    corpus.run(&["explain", "add"]);
    assert_eq!(known(), first);
}

#[test]
fn a_judge_says_first_that_a_library_is_quarantined() {
    let corpus = Corpus::new(&["setup:abort"]);
    corpus.run(&["doctor"]).expect(1);
    let library = corpus.path("setup:abort");
    for op in ["no_such_op", "add"] {
        let ran = corpus.run(&["conformance", "--op", op, "--library", library.to_str().unwrap()]).expect(1);
        let said = "could not be loaded: expected a library that can be loaded, got one quarantined because";
        assert!(ran.err.contains(said) && !ran.err.contains("no_such_op"), "{op}: {}", ran.err);
    }
}

#[test]
fn what_was_not_tried_is_not_said_to_be_used() {
    let corpus = Corpus::new(&["setup:abort"]);
    let missing = corpus.state.path().join("nothing");
    for (probe, why) in
        [("off", "KEYWAY_PROBE is `off`"), (missing.to_str().unwrap(), "there is no `keyway-probe`")]
    {
        let with = |arguments: &[&str]| {
            let mut command = corpus.command(arguments);
            command.env("KEYWAY_PROBE", probe);
            run(command).expect(0)
        };
        let ran = with(&["backend", "list"]);
        assert!(
            ran.out.contains("not tried") && ran.out.contains(why) && !ran.out.contains(" used"),
            "{}",
            ran.out
        );
        let report = with(&["backend", "list", "--json"]).json();
        assert!(report["untried"].as_str().unwrap().contains(why), "{report}");
    }
    // A library that is tried is used or rejected.
    assert!(corpus.run(&["backend", "list", "--json"]).expect(1).json()["untried"].is_null());
}

#[test]
fn a_time_limit_that_is_none_is_reported() {
    let corpus = Corpus::new(&["never:nothing"]);
    for limit in ["abc", "0", "-1", "nan"] {
        for (arguments, on_screen) in [(["explain", "add"], false), (["backend", "list"], true)] {
            let mut command = corpus.command(&arguments);
            command.env("KEYWAY_PROBE_SECONDS", limit);
            let ran = run(command);
            let said = format!("KEYWAY_PROBE_SECONDS: `{limit}` ignored, not a number of seconds above 0");
            assert!(ran.err.contains(&said), "{}", ran.err);
            assert_eq!(ran.out.contains(&said), on_screen, "{}", ran.out);
        }
    }
}

#[test]
fn what_changes_its_process_when_it_is_loaded_is_quarantined() {
    let mut kinds = vec![
        ("ctor:file_size", "the limit of file sizes"),
        ("ctor:umask", "the rights of new files (umask)"),
        ("ctor:folder", "the working directory"),
        ("setup:folder", "the working directory"),
        ("ctor:close", "an open file"),
        ("ctor:interrupt", "a signal handler"),
        ("setup:mask", "which signals the thread gets"),
        ("ctor:locale", "the locale"),
        ("ctor:timer", "a timer that sends signals"),
        ("count:timer", "a timer that sends signals"),
        ("ctor:nice", "nice"),
        ("ctor:preload", "an environment variable"),
        ("ctor:path", "an environment variable"),
    ];
    // Only on systems that list open descriptors.
    if Path::new("/proc/self/timers").exists() {
        kinds.push(("ctor:posix_timer", "a timer that sends signals"));
    }
    if cfg!(target_arch = "x86_64") {
        kinds.push(("ctor:fast_math", "how numbers are rounded"));
    }
    let corpus = Corpus::new(&kinds.iter().map(|(how, _)| *how).collect::<Vec<_>>());
    std::fs::copy(library(), corpus.folder.path().join("libsound.so")).unwrap();
    let report = corpus.run(&["doctor", "--json"]).expect(1).json();
    for (how, part) in &kinds {
        let (verdict, message) = verdict(&report, how);
        assert!(
            verdict == "rejected"
                && message.contains("quarantined")
                && message.contains("ing it changes the process: ")
                && message.contains(part),
            "{how}: {verdict}: {message}"
        );
    }
    assert_eq!((report["usable"].as_u64(), corpus.records()), (Some(1), kinds.len()));
}

#[test]
fn what_plugins_print_is_in_no_report() {
    let corpus = Corpus::new(&["ctor:print", "setup:print", "count:print", "exit:print", "later:print"]);
    for arguments in [
        ["doctor", "--json"].as_slice(),
        &["backend", "list", "--json"],
        &["ops", "--json"],
        &["explain", "add", "--json"],
    ] {
        let ran = corpus.run(arguments).expect(0);
        ran.json();
        assert!(ran.err.contains("by a plugin"), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn what_fails_to_register_beside_another_is_rejected_everywhere() {
    // Each library is sound by itself; only loading them together shows the fault.
    let corpus = Corpus::new(&["wrong:op_a", "wrong:op_b"]);
    std::fs::copy(library(), corpus.folder.path().join("libsound.so")).unwrap();
    for arguments in [["doctor", "--json"].as_slice(), &["backend", "list", "--json"]] {
        let report = corpus.run(arguments).expect(1).json();
        assert_eq!(verdict(&report, "wrong:op_a").0, "chosen");
        let (verdict, message) = verdict(&report, "wrong:op_b");
        assert!(verdict == "rejected" && message.contains("`unruly_twice`"), "{verdict}: {message}");
    }
    let ran = corpus.run(&["doctor"]).expect(1);
    assert!(
        ran.out.contains("2 usable, 1 rejected") && ran.err.contains("1 library cannot be used"),
        "{}",
        ran.err
    );
    assert!(corpus.run(&["backend", "list"]).expect(1).out.contains("rejected"));
    assert_eq!(corpus.records(), 0, "it is no fault of its bytes");
    let verified = corpus.run(&["backend", "verify", "--json"]).expect(0).json();
    assert!(verified.as_array().unwrap().iter().all(|one| one["sound"] == true), "{verified}");
}

#[test]
fn verify_tries_again_and_clears_the_record() {
    let corpus = Corpus::new(&["setup:abort"]);
    let quarantined = |ran: &Ran| ran.out.contains("quarantined because it was ended by SIGABRT");
    assert!(quarantined(&corpus.run(&["doctor"]).expect(1)));
    let ran = corpus.run(&["backend", "verify"]).expect(1);
    assert!(quarantined(&ran) && corpus.records() == 1, "{}", ran.out);
    assert!(!ran.out.contains("`keyway backend verify`"), "the command that was just run: {}", ran.out);
    // As if the cause had been removed outside of the library: the record is of its hash.
    let sound = corpus.folder.path().join("libsound.so");
    std::fs::remove_file(corpus.path("setup:abort")).unwrap();
    std::fs::copy(library(), &sound).unwrap();
    let records = corpus.state.path().join("keyway/quarantine");
    let record = std::fs::read_dir(&records).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&record).unwrap();
    let old = record.file_stem().unwrap().to_str().unwrap().to_string();
    let hash = keyway::dispatcher::loader::trust::sha256_file(&sound).unwrap();
    let size = std::fs::metadata(&sound).unwrap().len();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let text = text.replace(&old, &hash).replace(&value["size"].to_string(), &size.to_string());
    std::fs::write(records.join(format!("{hash}.json")), text).unwrap();
    assert!(quarantined(&corpus.run(&["backend", "list"]).expect(1)));
    assert!(
        corpus.run(&["backend", "verify", "no-such-backend"]).expect(2).err.contains("there: keyway-cpu")
    );
    let ran = corpus.run(&["backend", "verify", "keyway-cpu", "--json"]).expect(0).json();
    assert_eq!((&ran[0]["sound"], &ran[0]["name"]), (&true.into(), &"keyway-cpu".into()));
    assert_eq!(corpus.records(), 1, "the record of this library is gone, the other's is not");
    assert!(corpus.run(&["backend", "list"]).expect(0).out.contains("used"));
    let mut command = corpus.command(&["backend", "verify"]);
    command.env("KEYWAY_PROBE", "/nowhere/keyway-probe");
    assert!(run(command).expect(1).err.contains("without `keyway-probe`"));
}

#[test]
fn a_library_is_tried_once_and_again_when_it_changes() {
    let corpus = Corpus::new(&["never:nothing"]);
    let probe = corpus.state.path().join("keyway-probe");
    let log = corpus.state.path().join("log");
    let script = format!(
        "#!/bin/sh\necho \"$KEYWAY_PROBE_LIBRARY\" >> {}\nexec {}\n",
        log.display(),
        env!("CARGO_BIN_EXE_keyway-probe")
    );
    std::fs::write(&probe, script).unwrap();
    std::fs::set_permissions(&probe, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let tried = |arguments: &[&str]| {
        let mut command = corpus.command(arguments);
        command.env("KEYWAY_PROBE", &probe);
        run(command).expect(0);
        std::fs::read_to_string(&log).unwrap_or_default().lines().count()
    };
    assert_eq!(tried(&["backend", "list"]), 1);
    assert_eq!(tried(&["doctor"]), 1);
    assert_eq!(tried(&["ops"]), 1);
    // The same bytes at another path, or with new time stamps, are the same library.
    let path = corpus.path("never:nothing");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(tried(&["doctor"]), 1);
    corpus.add(7, "never:nothing");
    assert_eq!(tried(&["doctor"]), 2);
    // The state of a known library is trusted only from a file that other users cannot write.
    let known = corpus.state.path().join("keyway/verified.json");
    std::fs::set_permissions(known, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    assert_eq!(tried(&["doctor"]), 3);
}

/// A different driver in a plugin's variable counts as another machine: the library is tried again, and a failure on it holds
/// only for it.
#[test]
fn a_driver_that_a_variable_names_is_tried_with_the_library() {
    let corpus = Corpus::new(&["ctor:abort"]);
    let (driver, elsewhere) = (corpus.path("ctor:abort"), tempfile::tempdir().unwrap());
    let bad = elsewhere.path().join("libcuda.so.1");
    std::fs::copy(driver, &bad).unwrap();
    let list = |driver: &Path, code| {
        let mut command = program(&library_of("keyway_backend_cuda"));
        command.args(["backend", "list"]).env("XDG_STATE_HOME", corpus.state.path());
        command.env("KEYWAY_CUDA_DRIVER", driver);
        run(command).expect(code)
    };
    let absent = Path::new("/nowhere/libcuda.so.1");
    assert!(list(absent, 0).out.contains("cuda: 0 devices"));
    let ran = list(&bad, 1);
    let said = format!("with KEYWAY_CUDA_DRIVER={}", bad.display());
    assert!(ran.out.contains("SIGABRT") && ran.out.contains(&said), "{}{}", ran.out, ran.err);
    assert!(list(absent, 0).out.contains("cuda: 0 devices"));
}
