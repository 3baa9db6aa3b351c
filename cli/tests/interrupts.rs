//! Libraries that are slow, and users who interrupt; libraries that fork or exhaust their process.

mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::corpus::{Corpus, verdict};
use support::{library, run};

/// Starts a command and ends it with a signal while it does what leaves a file that ends in `mark`.
fn interrupt(corpus: &Corpus, arguments: &[&str], mark: &str, signal: &str) {
    let mut command = corpus.command(arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let folder = corpus.state.path().join("keyway/quarantine");
    let names = || std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|e| e.path());
    let begun = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        path.extension().is_some_and(|end| end == mark)
            && text.ends_with(&format!("by process {}\n", child.id()))
    };
    let start = Instant::now();
    while !names().any(begun) {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing is {mark}");
        std::thread::sleep(Duration::from_millis(5));
    }
    // The library is running, and not the host.
    std::thread::sleep(Duration::from_millis(200));
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success() && child.wait().unwrap().code().is_none(), "{signal} ends it");
}

#[test]
fn an_interrupt_says_nothing_against_a_slow_library() {
    let corpus = Corpus::new(&["setup:slow"]);
    let sound = || {
        let report = corpus.run(&["doctor", "--json"]).expect(0).json();
        assert_eq!(verdict(&report, "setup:slow").0, "chosen");
    };
    for signal in ["-INT", "-TERM", "-INT"] {
        interrupt(&corpus, &["explain", "abs"], "trying", signal);
    }
    // The library passes its trial, and is interrupted when it is loaded.
    for signal in ["-INT", "-TERM", "-HUP"] {
        interrupt(&corpus, &["explain", "abs"], "loading", signal);
    }
    sound();
    assert_eq!(corpus.records(), 0);
}

#[test]
fn a_library_that_is_killed_while_it_is_loaded_is_counted() {
    let corpus = Corpus::new(&["setup:slow"]);
    for signal in ["-KILL", "-INT", "-KILL"] {
        interrupt(&corpus, &["explain", "abs"], "loading", signal);
    }
    let report = corpus.run(&["doctor", "--json"]).expect(1).json();
    let (verdict, message) = verdict(&report, "setup:slow");
    assert!(verdict == "rejected" && message.contains("two programs ended"), "{verdict}: {message}");
}

#[test]
fn what_divides_its_process_is_refused() {
    let corpus = Corpus::new(&["setup:fork", "ctor:fork"]);
    std::fs::copy(library(), corpus.folder.path().join("libsound.so")).unwrap();
    let report = corpus.run(&["backend", "list", "--json"]).expect(1).json();
    for how in ["setup:fork", "ctor:fork"] {
        let (verdict, message) = verdict(&report, how);
        assert!(verdict == "rejected" && message.contains("forks the process"), "{how}: {message}");
    }
}

#[test]
fn the_true_reason_is_reported_where_no_file_can_be_opened() {
    let corpus = Corpus::new(&["setup:files", "count:files", "setup:few_files"]);
    let command = corpus.command(&["doctor", "--json"]);
    // Lowers the number of descriptors to open.
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", "ulimit -n 512; exec \"$0\" \"$@\""])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let report = run(shell).expect(1).json();
    for (how, part) in [
        ("setup:files", "the file descriptors"),
        ("count:files", "the file descriptors"),
        ("setup:few_files", "the limit of open files"),
    ] {
        let (verdict, message) = verdict(&report, how);
        assert!(verdict == "rejected" && message.contains(part), "{how}: {message}");
        assert!(!message.contains("a timer"), "{how}: {message}");
    }
}
