//! Planning memory formats from the command line.

mod support;

use serde_json::Value;
use support::{Ran, bare, library_of, program};

/// Plans with both libraries for the CPU.
fn plan(arguments: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    for name in ["keyway_backend_cpu", "keyway_backend_channels_last"] {
        let from = library_of(name);
        std::fs::copy(&from, folder.path().join(from.file_name().unwrap())).unwrap();
    }
    let mut command = program(folder.path());
    command.arg("plan").args(arguments).args(["--rounds", "1", "--threads=1"]);
    support::run(command)
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
