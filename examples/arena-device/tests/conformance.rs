//! The suite judges the device, as `keyway conformance --profile train --library FILE --quick` does.

mod support;

use keyway::ops::tiers;
use keyway_conformance::outcome::Outcome;
use keyway_conformance::runner::{self, Limits, Selection, worker};
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const WORKER: &str = "ARENA_DEVICE_WORKER";

/// Not a test of its own: the suite runs each case in a worker process, and this program is its own worker.
#[test]
fn worker() {
    if std::env::var_os(WORKER).is_none() {
        return;
    }
    let job = worker::Job {
        name: None,
        would_serve: None,
        library: Some(support::library()),
        backends: Vec::new(),
        selection: Selection { profile: Some("train".into()), quick: true, ..Selection::default() },
        listed: std::env::args().all(|word| word != runner::UNLISTED),
    };
    worker::serve(&job, std::io::stdin().lock(), std::io::stdout().lock()).unwrap();
}

#[test]
fn every_case_of_the_profile_is_as_expected() {
    let command = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        // What the runner adds is no option of the test harness.
        command.args(["worker", "--exact", "--nocapture", "--"]).env(WORKER, "1");
        command
    };
    let limits = Limits { jobs: 2, turns: 2, timeout: Duration::from_secs(60), memory: 4 << 30 };
    let ran = runner::run(&command, limits, &AtomicBool::new(false), &|_, _, _| ()).unwrap();
    assert_eq!((ran.judged.plugin.as_str(), ran.interrupted), ("example.org/arena-device", false));
    let failed: Vec<String> = ran
        .finished
        .iter()
        .filter(|case| case.outcome.is_failure())
        .map(|case| format!("{}: {:?}", case.case.id, case.outcome))
        .collect();
    let (count, all) = (failed.len(), ran.finished.len());
    assert!(
        failed.is_empty(),
        "{count} of {all} cases are not as expected, the first of them:\n{}",
        failed[..count.min(20)].join("\n")
    );
    // What the gradients of the profile's ops are made of is in the profile, too.
    let of_profile: BTreeSet<&str> = tiers::ALL.iter().flat_map(|tier| tier.ops).copied().collect();
    let lacking: Vec<String> = ran
        .finished
        .iter()
        .filter(|case| case.case.family.starts_with("grad") && of_profile.contains(case.case.op.as_str()))
        .filter(|case| matches!(case.outcome, Outcome::Unsupported { .. }))
        .map(|case| format!("{}: {:?}", case.case.id, case.outcome))
        .collect();
    assert!(lacking.is_empty(), "{}", lacking.join("\n"));
    let passed = ran.finished.iter().filter(|case| case.outcome == Outcome::Passed).count();
    let of_profile = ran.finished.iter().filter(|case| case.case.id.starts_with("profile/")).count();
    println!("{passed} of {all} cases passed");
    assert!(passed > 1000 && of_profile > 60, "{passed} passed, {of_profile} of the profile");
}
