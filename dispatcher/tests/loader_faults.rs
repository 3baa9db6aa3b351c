//! Plugins that fail while they are set up. The fault is named by an environment variable, so each case
//! runs in a process of its own: this program starts itself again.

mod loader_support;

use keyway_dispatcher::loader::LoadError;
use loader_support::*;
use std::process::Command;

const CASE: &str = "KEYWAY_TEST_FAULT";

/// The child's part: does nothing unless a parent named a fault.
#[test]
fn load_with_the_named_fault() {
    let Ok(fault) = std::env::var(CASE) else { return };
    let folder = Folder::new();
    folder.add("a.so", &minimal());
    let loaded = load(folder.config());
    let names: Vec<&str> = loaded.plugins.iter().map(|p| p.manifest.name.as_str()).collect();
    assert_eq!(names, ["keyway.test/minimal"], "the sound plugin must load: {:?}", loaded.rejected);
    let error = &loaded.rejected[0].error;
    let text = error.to_string();
    match fault.as_str() {
        "panic_at_load" => {
            assert_eq!(*error, LoadError::Panicked { message: "told to panic at load".to_string() });
            assert!(
                text.contains("expected") && text.contains("got a panic") && text.contains("report this"),
                "{text}"
            );
            // The second attempt finds the plugin poisoned.
            let again = load(folder.config());
            assert!(matches!(again.rejected[0].error, LoadError::Panicked { .. }));
        }
        "fail_at_load" => {
            assert_eq!(
                *error,
                LoadError::InitFailed { status: 1, message: "told to fail at load".to_string() }
            );
            assert!(
                text.contains("expected") && text.contains("status 1") && text.contains("fix the cause"),
                "{text}"
            );
        }
        other => panic!("unknown fault {other}"),
    }
    println!("the fault {fault} was reported");
}

fn in_a_child(fault: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "load_with_the_named_fault", "--nocapture"])
        .env(CASE, fault)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(&format!("the fault {fault} was reported")), "{text}");
}

/// Also in a program that does not guard its own end, `exit(0)` in a set-up is a failure that names the library.
#[test]
fn a_plugin_that_ends_the_program_at_load() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "load_with_the_named_fault", "--nocapture"])
        .env(CASE, "exit_at_load")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for part in ["z.so", "ended the program while it was loaded", "keyway backend disable keyway.test/faulty"]
    {
        assert!(text.contains(part), "`{part}` is missing in: {text}");
    }
}

#[test]
fn a_plugin_that_panics_at_load() {
    in_a_child("panic_at_load");
}

#[test]
fn a_plugin_that_fails_at_load() {
    in_a_child("fail_at_load");
}
