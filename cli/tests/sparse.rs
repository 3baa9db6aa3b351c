//! Sparse tensors from the command line: the trainings that use them, the conformance run of their library, and the messages
//! where it is missing.

mod support;

use support::{Ran, library, library_of, program, run};

/// The program with the CPU backend and these libraries.
fn keyway(libraries: &[&str], arguments: &[&str]) -> Ran {
    let paths = std::iter::once(library()).chain(libraries.iter().map(|name| library_of(name)));
    let mut command = program(&library());
    command.env("KEYWAY_BACKEND_PATH", std::env::join_paths(paths).unwrap()).args(arguments);
    run(command)
}

const SPARSE: &[&str] = &["keyway_backend_sparse"];

#[test]
fn bags_of_pixels_learn_the_digits() {
    let accuracies = ["1", "2"].map(|threads| {
        let folder = tempfile::tempdir().unwrap();
        let json = folder.path().join("r.json");
        let arguments =
            ["train", "digits", "--model", "bag", "--threads", threads, "--json", json.to_str().unwrap()];
        let ran = keyway(SPARSE, &arguments).expect(0);
        assert!(ran.out.contains("bag on digits") && ran.out.contains("1088-32-10 layers"), "{}", ran.out);
        let report: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
        assert!(report["test_accuracy"].as_f64().unwrap() >= 0.85, "{report}");
        report["weights_sha256"].as_str().unwrap().to_string()
    });
    assert_eq!(accuracies[0], accuracies[1], "the weights do not depend on the threads");
}

#[test]
fn a_graph_net_tells_the_two_sides_of_the_club() {
    for seed in ["0", "1", "2", "3", "4"] {
        let ran = keyway(SPARSE, &["train", "graph", "--model", "gcn", "--seed", seed]).expect(0);
        let wrong =
            ran.out.lines().find_map(|line| line.split(" of 34 nodes wrong").next()?.parse::<u32>().ok());
        assert!(wrong.unwrap() <= 2, "{}", ran.out);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (weights, json) = (file("weights.safetensors"), file("r.json"));
    let trace = format!("--profile={}", file("trace.json"));
    let memory = file("memory.html");
    let arguments = ["train", "graph", "--epochs", "3", "--save", &weights, "--json", &json, &trace];
    let arguments = [&arguments[..], &["--profile-memory", &memory]].concat();
    let ran = keyway(SPARSE, &arguments).expect(0);
    assert!(ran.out.contains("wrote the weights to") && ran.out.contains("SERVED BY"), "{}", ran.out);
    assert!(std::fs::read_to_string(memory).unwrap().contains("\"op\":\"relu\""));
    let saved = keyway::io::safetensors::load(&weights).unwrap();
    assert_eq!(saved["layers.0.weight"].shape(), [34, 16]);
    assert_eq!(saved["layers.1.weight"].shape(), [16, 2]);
    let shown = keyway(&[], &["profile", "show", &file("trace.json")]).expect(0);
    assert!(shown.out.contains("keyway-sparse"), "{}", shown.out);
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert!(report["profile"]["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{report}");
    let ran = keyway(SPARSE, &["train", "graph", "--batch", "4"]).expect(2);
    assert!(ran.err.contains("`graph` has no `--batch`"), "{}", ran.err);
    let ran = keyway(SPARSE, &["train", "graph", "--model", "cnn"]).expect(2);
    assert!(ran.err.contains("`gcn` is for `graph`"), "{}", ran.err);
    let ran = keyway(SPARSE, &["train", "digits", "--model", "gcn"]).expect(2);
    assert!(ran.err.contains("`gcn` is for `graph`"), "{}", ran.err);
}

#[test]
fn what_needs_the_library_names_it() {
    for arguments in [["train", "digits", "--model", "bag"], ["train", "graph", "--model", "gcn"]] {
        let ran = keyway(&[], &arguments).expect(1);
        assert!(ran.err.contains("`sparse_coo` is served by `keyway-sparse`"), "{}", ran.err);
    }
    // A GPU's backend provides the layout, and serves it on GPUs alone.
    let ran = keyway(&["keyway_backend_cuda"], &["train", "graph", "--model", "gcn"]).expect(1);
    assert!(ran.err.contains("`sparse_coo` is served by `keyway-sparse`"), "{}", ran.err);
    for layout in ["sparse_coo", "sparse_csr"] {
        let explain = ["explain", "mm", "--layout", layout];
        assert!(keyway(&[], &explain).expect(2).err.contains("keyway-sparse"));
        assert!(keyway(SPARSE, &explain).expect(0).out.contains("kernel of `keyway-sparse`"));
    }
}

/// A library that exists and is damaged is not reported as missing.
#[test]
fn what_needs_a_refused_library_says_why_it_was_refused() {
    let folder = tempfile::tempdir().unwrap();
    let whole = library_of(SPARSE[0]);
    let damaged = folder.path().join(whole.file_name().unwrap());
    std::fs::write(&damaged, &std::fs::read(&whole).unwrap()[..10_000]).unwrap();
    let mut command = program(&library());
    let paths = std::env::join_paths([library(), damaged]).unwrap();
    command.env("KEYWAY_BACKEND_PATH", paths).args(["train", "graph", "--model", "gcn"]);
    let ran = run(command).expect(1);
    assert!(ran.err.contains("`keyway-sparse`, which was found and refused: "), "{}", ran.err);
    assert!(!ran.err.contains("is not installed"), "{}", ran.err);
}

#[test]
fn the_library_passes_its_judgement() {
    let file = library_of(SPARSE[0]);
    let arguments = ["conformance", "--quick", "--family", "kernels", "--family", "layout", "--library"];
    let ran = keyway(&[], &[&arguments[..], &[file.to_str().unwrap()]].concat()).expect(0);
    assert!(ran.out.contains("keyway-sparse"), "{}", ran.out);
}
