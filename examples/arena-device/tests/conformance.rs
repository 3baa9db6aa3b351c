//! Runs the suite on the device: `keyway conformance --profile train --library FILE --quick`, with the program in `KEYWAY`,
//! else the installed one.

mod support;

use keyway::ops::tiers;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// The cases of a successful run, each with `id`, `family`, `op` and `status`.
fn judged() -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let program = std::env::var_os("KEYWAY").unwrap_or_else(|| "keyway".into());
    let mut command = Command::new(&program);
    command.args(["conformance", "--profile", "train", "--quick", "--jobs", "2", "--timeout", "60"]);
    command.arg("--library").arg(support::library()).arg("--json").arg(&report);
    let output = command.output().unwrap_or_else(|error| {
        panic!("{program:?} cannot be started ({error}); install `keyway`, or name it in KEYWAY")
    });
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {said}", output.status);
    let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    assert_eq!(report["plugin"], "example.org/arena-device");
    assert_eq!(report["interrupted"], false);
    report["cases"].as_array().unwrap().clone()
}

#[test]
fn every_case_of_the_profile_is_as_expected() {
    let cases = judged();
    let text = |case: &Value, field: &str| case[field].as_str().unwrap_or_default().to_string();
    let passed = cases.iter().filter(|case| text(case, "status") == "passed").count();
    // The ops in the gradients of the profile's ops are in the profile, too.
    let of_profile: BTreeSet<&str> = tiers::up_to("train").unwrap().iter().flat_map(|tier| tier.ops).copied().collect();
    let lacking: Vec<String> = cases
        .iter()
        .filter(|case| {
            text(case, "family").starts_with("grad") && of_profile.contains(text(case, "op").as_str())
        })
        .filter(|case| text(case, "status") == "unsupported")
        .map(|case| text(case, "id"))
        .collect();
    assert!(lacking.is_empty(), "{}", lacking.join("\n"));
    let of_profile = cases.iter().filter(|case| text(case, "id").starts_with("profile/")).count();
    println!("{passed} of {} cases passed", cases.len());
    assert!(passed > 1000 && of_profile > 60, "{passed} passed, {of_profile} of the profile");
}
