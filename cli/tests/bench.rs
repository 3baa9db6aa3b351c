//! Measuring a known network from the command line.

mod support;

use keyway::io::safetensors;
use keyway::nn::models::ResNet;
use keyway::nn::{Linear, Module};
use serde_json::Value;
use std::path::Path;
use support::{Ran, bare, keyway, library_of, program};

const SMALL: [&str; 6] = ["bench", "--size", "33", "--rounds", "3", "--threads=1"];

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Measures with both libraries; returns the output and the results.
fn bench(arguments: &[&str]) -> (Ran, Value) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["keyway_backend_cpu", "keyway_backend_channels_last"] {
        let from = library_of(name);
        std::fs::copy(&from, folder.path().join(from.file_name().unwrap())).unwrap();
    }
    let json = folder.path().join("bench.json");
    let mut command = program(folder.path());
    command.args(SMALL).args(arguments).args(["--json", text(&json)]);
    let ran = support::run(command).expect(0);
    assert!(
        ran.shown
            .iter()
            .all(|shown| shown.lines().all(|line| line.chars().count() <= 80 || line.contains('/')))
    );
    (ran, serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap())
}

fn number(results: &Value, name: &str) -> f64 {
    results[name].as_f64().unwrap_or_else(|| panic!("{name}: {results}"))
}

#[test]
fn a_pass_is_measured() {
    let (ran, results) = bench(&["--model", "resnet18", "--batch", "2"]);
    for part in [
        "resnet18, pass: batch 2, 33x33 pixels, f32, contiguous",
        "11689512 parameters, random, on cpu with 1 thread",
        "in 3 rounds",
        "images per second",
        "SERVED BY",
        "wrote the results to",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let seconds: Vec<f64> =
        results["seconds"].as_array().unwrap().iter().map(|s| s.as_f64().unwrap()).collect();
    let [lowest, median, highest] =
        ["lowest_seconds", "median_seconds", "highest_seconds"].map(|n| number(&results, n));
    assert_eq!(seconds.len(), 3);
    assert!(seconds.contains(&median) && 0.0 < lowest && lowest <= median && median <= highest, "{results}");
    assert!((number(&results, "images_per_second") * median - 2.0).abs() < 1e-9);
    let weights = number(&results, "weight_bytes");
    assert_eq!(weights, 4.0 * (11_689_512.0 + 2.0 * 4_800.0) + 20.0 * 8.0);
    let [round, process] = ["round_bytes", "peak_bytes"].map(|n| number(&results, n));
    // The two largest activations, before and after the first norm, and the scratch memory of kernels.
    let activations = 2.0 * 4.0 * (2 * 64 * 17 * 17) as f64;
    assert!(activations <= round && round < 0.5 * weights && weights + round < process, "{results}");
    assert_eq!((&results["train"], &results["loss"]), (&false.into(), &Value::Null));
    assert_eq!(results["served"][0]["by"], "keyway-cpu");
}

#[test]
fn a_round_is_profiled_by_op_and_shape() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    let (ran, _) = bench(&["--memory-format", "channels_last", "--profile", text(&trace)]);
    // The table, and the same from the file: one pass has 20 convolutions.
    let mut show = program(folder.path());
    show.args(["profile", "show", text(&trace), "--json"]);
    let shown: Value = serde_json::from_str(&support::run(show).expect(0).out).unwrap();
    let calls = |row: &Value| row["calls"].as_u64().unwrap();
    let convolutions = shown["rows"].as_array().unwrap().iter().filter(|row| row["op"] == "conv");
    assert_eq!(convolutions.map(calls).sum::<u64>(), 20, "{shown}");
    for part in ["f32[1000,512]", "no copy reordered memory", "wrote the trace to"] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
}

#[test]
fn a_fused_pass_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    let (ran, results) = bench(&["--fused", "--memory-format", "channels_last", "--profile", text(&trace)]);
    assert!(ran.out.contains("resnet18, fused pass: batch 1"), "{}", ran.out);
    assert!(ran.out.contains("11689512 parameters"), "{}", ran.out);
    assert_eq!(
        (&results["fused"], &results["served"][0]["by"]),
        (&true.into(), &"keyway-channels-last".into())
    );
    // The weights without the five values of each of the norms' 4,800 channels, but with a bias.
    assert_eq!(number(&results, "weight_bytes"), 4.0 * (11_689_512.0 - 2.0 * 4_800.0 + 4_800.0));
    let mut show = program(folder.path());
    show.args(["profile", "show", text(&trace), "--json"]);
    let shown: Value = serde_json::from_str(&support::run(show).expect(0).out).unwrap();
    let ops: Vec<&str> =
        shown["rows"].as_array().unwrap().iter().map(|row| row["op"].as_str().unwrap()).collect();
    assert!(ops.contains(&"conv_act") && !ops.contains(&"batch_norm") && !ops.contains(&"relu"), "{ops:?}");
}

#[test]
fn a_training_step_is_measured_in_each_format_and_dtype() {
    let mut losses = Vec::new();
    for (dtype, format) in [("f32", "contiguous"), ("f32", "channels_last"), ("bf16", "channels_last")] {
        let (ran, results) = bench(&["--train", "--batch=2", "--dtype", dtype, "--memory-format", format]);
        let title = format!("resnet18, training step: batch 2, 33x33 pixels, {dtype}, {format}");
        assert!(ran.out.contains(&title) && ran.out.contains("loss of the last step"), "{}", ran.out);
        assert_eq!((&results["dtype"], &results["memory_format"]), (&dtype.into(), &format.into()));
        let names: Vec<&str> =
            results["served"].as_array().unwrap().iter().map(|s| s["by"].as_str().unwrap()).collect();
        assert!(names.contains(&"keyway-cpu"), "{names:?}");
        assert_eq!(names.contains(&"keyway-channels-last"), format == "channels_last", "{names:?}");
        losses.push(number(&results, "loss"));
    }
    // ln 1000 is the loss of a uniform prediction; this network has memorised its two images.
    assert!(losses.iter().all(|loss| (0.0..0.1).contains(loss)), "{losses:?}");
    assert!((losses[0] - losses[1]).abs() < 0.05 * losses[0] + 1e-3, "{losses:?}");
}

#[test]
fn weights_come_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (good, old, other, cut) = (path("good"), path("old"), path("other"), path("cut"));
    let mut state = ResNet::resnet18(5).unwrap().state_dict();
    safetensors::save(&good, &state).unwrap();
    // As PyTorch saved it before it counted batches.
    state.retain(|name, _| !name.ends_with("num_batches_tracked"));
    safetensors::save(&old, &state).unwrap();
    for file in [&good, &old] {
        let (ran, results) = bench(&["--weights", text(file)]);
        assert!(ran.out.contains(&format!("parameters, from {}", file.display())), "{}", ran.out);
        assert_eq!(results["parameters"], 11_689_512 - 995 * 513);
    }

    safetensors::save(&other, &Linear::new(3, 2).unwrap().state_dict()).unwrap();
    let bytes = std::fs::read(&good).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() - 1]).unwrap();
    for (file, part) in [(&other, "122 missing: bn1.bias"), (&cut, "cut"), (&path("absent"), "No such file")]
    {
        let ran = keyway(&[SMALL.as_slice(), &["--weights", text(file)]].concat()).expect(1);
        assert!(ran.err.contains(part) && ran.err.contains(text(file)), "{}", ran.err);
        assert!(ran.out.is_empty(), "{}", ran.out);
    }
}

#[test]
fn wrong_options_are_wrong_usage() {
    for (arguments, part) in [
        (["--fused", "--train"], "--train"),
        (["--model", "alexnet"], "resnet18"),
        (["--dtype", "f64"], "f32, bf16"),
        (["--memory-format", "nhwc"], "contiguous, channels_last"),
        (["--batch", "0"], "--batch"),
        (["--size", "0"], "--size"),
        (["--rounds", "0"], "--rounds"),
        (["--threads", "0"], "--threads"),
        (["--device", "tpu"], "there is: cpu"),
    ] {
        let ran = keyway(&[["bench"].as_slice(), &arguments].concat()).expect(2);
        assert!(ran.err.contains(part), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn what_cannot_be_done_is_said_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent/r.json");
    let ran = keyway(&["bench", "--json", text(&absent)]).expect(1);
    assert!(ran.err.contains("cannot write the results to") && ran.out.is_empty(), "{}", ran.err);
    let ran = bare(&["bench"]).expect(1);
    assert!(ran.err.contains("measuring on `cpu` needs a backend, and none is installed"), "{}", ran.err);
    // More than any machine has: 2^31 images of 2^32 bytes each.
    let ran = keyway(&["bench", "--batch", "2147483648", "--size", "16384"]).expect(1);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    assert!(ran.err.contains("memory") || ran.err.contains("bytes"), "{}", ran.err);
}
