//! Planning memory formats from the command line.

mod support;

use serde_json::Value;
use support::{Ran, bare, library_of, program};

/// Both libraries for the CPU, and the test plugin of a layout.
fn libraries() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["keyway_backend_cpu", "keyway_backend_channels_last", "keyway_test_int8"] {
        let from = library_of(name);
        std::fs::copy(&from, folder.path().join(from.file_name().unwrap())).unwrap();
    }
    folder
}

/// Plans with these libraries.
fn plan(arguments: &[&str]) -> Ran {
    let folder = libraries();
    let mut command = program(folder.path());
    command.arg("plan").args(arguments).args(["--rounds", "1", "--threads=1"]);
    support::run(command)
}

/// The output of a command with these libraries.
fn said(folder: &tempfile::TempDir, arguments: &[&str]) -> Ran {
    let mut command = program(folder.path());
    command.args(arguments);
    support::run(command).expect(0)
}

#[test]
fn a_plan_is_shown_by_layer() {
    let ran = plan(&["cnn", "--size", "16", "--batch", "2"]).expect(0);
    for part in [
        "cnn: batch 2, 16x16 pixels, f32, contiguous without a plan",
        "on cpu with 1 thread",
        "LAYER",
        "BEFORE ms",
        "batch_norm",
        "conversions inserted:",
        "sum of calls:",
        "whole pass:",
        "largest difference of a score:",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    assert!(ran.shown[0].lines().all(|line| line.chars().count() <= support::COLUMNS), "{}", ran.out);
}

#[test]
fn a_plan_is_data() {
    let ran = plan(&["resnet18", "--size", "33", "--memory-format", "channels_last", "--json"]).expect(0);
    let results: Value = serde_json::from_str(&ran.out).unwrap();
    let steps = results["steps"].as_array().unwrap();
    let convolutions: Vec<&Value> = steps.iter().filter(|step| step["op"] == "conv").collect();
    assert_eq!((convolutions.len(), results["parameters"].as_array().unwrap().len()), (20, 20));
    assert_eq!(convolutions[1]["layer"], "layer1.0.conv1");
    assert_eq!(convolutions[0]["format_before"], "channels_last");
    let inserted: usize = steps.iter().map(|step| step["conversions"].as_array().unwrap().len()).sum();
    assert_eq!(results["conversions"], inserted);
    let number = |name: &str| results[name].as_f64().unwrap_or_else(|| panic!("{name}: {results}"));
    assert!(number("calls_seconds_after") <= number("calls_seconds_before"), "{results}");
    assert!(number("pass_seconds_after") > 0.0 && number("largest_difference") < 1e-3, "{results}");
    let last = &steps[steps.len() - 1];
    assert_eq!((&last["layer"], &last["format"]), (&"fc".into(), &Value::Null));
}

#[test]
fn a_plan_is_made_from_declared_costs() {
    let planned = || -> Value {
        let ran = plan(&["cnn", "--size", "16", "--batch", "2", "--costs", "declared", "--json"]).expect(0);
        serde_json::from_str(&ran.out).unwrap()
    };
    let results = planned();
    assert_eq!(results["costs"], "declared");
    let steps = results["steps"].as_array().unwrap();
    let conv = steps.iter().find(|step| step["op"] == "conv").unwrap();
    assert_eq!((&conv["format_before"], &conv["format"]), (&"contiguous".into(), &"channels_last".into()));
    let pool = steps.iter().find(|step| step["op"] == "max_pool_values").unwrap();
    let seconds = |name: &str| pool[name].as_f64().unwrap();
    assert!((seconds("seconds_after") / seconds("seconds_before") - 0.77).abs() < 1e-9, "{pool}");
    // Nothing is measured, so the plan is the same again.
    assert_eq!(planned()["steps"], results["steps"]);
    let ran = plan(&["cnn", "--size", "16", "--batch", "2", "--costs", "declared"]).expect(0);
    assert!(ran.out.contains("sum of calls, estimated from declarations:"), "{}", ran.out);
    let ran = plan(&["cnn", "--costs", "guessed"]).expect(2);
    assert!(ran.err.contains("measured") && ran.err.contains("declared"), "{}", ran.err);
}

#[test]
fn declarations_are_shown_where_backends_and_ops_are() {
    let folder = libraries();
    let listed = said(&folder, &["backend", "list"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "keyway-channels-last: times relative to row-major order: batch_norm on cpu in channels_last (0.9), conv on cpu \
         in channels_last (0.88)",
        "keyway.test/int8: times relative to row-major order: mm on cpu in test.keyway/int8 (0.5)",
    ] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    assert!(!listed.contains("without effect"), "{listed}");
    let json = said(&folder, &["backend", "list", "--json"]).json();
    let all = json["backends"].as_array().unwrap();
    let int8 = all.iter().find(|b| b["library"]["manifest"]["name"] == "keyway.test/int8").unwrap();
    assert_eq!((&int8["preferences"][0]["op"], &int8["preferences"][0]["cost"]), (&"mm".into(), &0.5.into()));
    let out = said(&folder, &["explain", "mm"]).out;
    let line = "`keyway.test/int8` declares test.keyway/int8: 0.5 times the time in row-major order";
    assert!(out.contains(line), "{out}");
    let json = said(&folder, &["explain", "conv", "--json"]).json();
    assert_eq!(json["preferences"][0]["plugin"], "keyway-channels-last");
    assert!(json["op"].as_str().unwrap().starts_with("conv(Tensor"), "{json}");
}

#[test]
fn what_cannot_be_planned_is_refused() {
    let ran = plan(&["resnet19"]).expect(2);
    assert!(ran.err.contains("resnet18") && ran.err.contains("three-layer"), "{}", ran.err);
    let ran = plan(&["cnn", "--size", "1"]).expect(2);
    assert!(ran.err.contains("expected --size of 2 or more for `cnn`, got 1"), "{}", ran.err);
    plan(&["cnn", "--batch", "0"]).expect(2);
    let ran = plan(&["cnn", "--device", "cuda"]).expect(2);
    assert!(ran.err.contains("there is no device `cuda`"), "{}", ran.err);
    let ran = bare(&["plan", "cnn"]).expect(1);
    assert!(ran.err.contains("planning on `cpu` needs a backend, and none is installed"), "{}", ran.err);
}
