//! Training from the command line.

mod support;

use std::path::Path;
use support::{bare, keyway, library, program};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn train(folder: &Path, threads: &str) -> serde_json::Value {
    let json = folder.join("train.json");
    let arguments =
        ["train", "digits", "--model", "mlp", "--epochs", "3", "--seed", "0", "--threads", threads, "--json"];
    keyway(&[arguments.as_slice(), &[text(&json)]].concat()).expect(0);
    serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap()
}

#[test]
fn the_weights_do_not_depend_on_the_threads() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (train(folder.path(), "1"), train(folder.path(), "2"));
    assert_eq!((&one["threads"], &two["threads"]), (&1.into(), &2.into()));
    assert_eq!(one["weights_sha256"], two["weights_sha256"]);
    assert_eq!(one["weights_sha256"].as_str().unwrap().len(), 64);
    assert_eq!(one["train_loss"], two["train_loss"]);
    let losses = one["train_loss"].as_array().unwrap();
    assert_eq!(losses.len(), 3);
    assert!(losses[2].as_f64() < losses[0].as_f64());
    assert!(one["test_accuracy"].as_f64().unwrap() > 0.6, "{one}");
    assert!(one["seconds"].as_f64().unwrap() > 0.0);
    assert!(one["peak_bytes"].as_u64().unwrap() > 1_000_000);
}

#[test]
fn a_network_of_convolutions_learns_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let results = ["1", "2"].map(|threads| {
        let json = folder.path().join("cnn.json");
        let arguments =
            ["train", "digits", "--model", "cnn", "--epochs", "2", "--threads", threads, "--json"];
        let ran = keyway(&[arguments.as_slice(), &[text(&json)]].concat()).expect(0);
        assert!(ran.out.contains("cnn on digits") && ran.out.contains("1-32-64 channels"), "{}", ran.out);
        serde_json::from_slice::<serde_json::Value>(&std::fs::read(&json).unwrap()).unwrap()
    });
    let [one, two] = &results;
    assert_eq!(one["model"], "cnn");
    assert_eq!(one["weights_sha256"], two["weights_sha256"]);
    assert_eq!(one["train_loss"], two["train_loss"]);
    assert!(one["test_accuracy"].as_f64().unwrap() > 0.85, "{one}");
}

/// Two epochs of the convolutional network, with these libraries and in this memory format.
fn train_images(libraries: &[&str], format: &str) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    for name in libraries {
        let from = support::library_of(name);
        std::fs::copy(&from, folder.path().join(from.file_name().unwrap())).unwrap();
    }
    let json = folder.path().join("cnn.json");
    let mut command = program(folder.path());
    command.args([
        "train",
        "digits",
        "--model",
        "cnn",
        "--epochs",
        "2",
        "--memory-format",
        format,
        "--profile",
    ]);
    support::run(command_with(command, &["--json", text(&json)])).expect(0);
    serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap()
}

fn command_with(mut command: std::process::Command, arguments: &[&str]) -> std::process::Command {
    command.args(arguments);
    command
}

#[test]
fn the_memory_format_changes_who_computes_and_not_what() {
    const BOTH: &[&str] = &["keyway_backend_cpu", "keyway_backend_channels_last"];
    let plain = train_images(BOTH, "contiguous");
    let serves = |run: &serde_json::Value| run["profile"].to_string().contains("keyway-channels-last");
    for (libraries, served) in [(BOTH, true), (&BOTH[..1], false)] {
        let images = train_images(libraries, "channels_last");
        assert_eq!(images["memory_format"], "channels_last");
        assert_eq!(serves(&images), served, "{}", images["profile"]);
        let losses = |run: &serde_json::Value| {
            run["train_loss"].as_array().unwrap().iter().map(|l| l.as_f64().unwrap()).collect::<Vec<_>>()
        };
        // Each step amplifies rounding differences: activations near 0 pass the ReLU in one run and not in the other.
        for ((a, b), slack) in losses(&plain).iter().zip(losses(&images)).zip([2e-3, 5e-2]) {
            assert!((a - b).abs() < slack * a, "{a} and {b}");
        }
        assert!(images["test_accuracy"].as_f64().unwrap() > 0.85);
    }
}

#[test]
fn a_network_without_images_has_no_memory_format() {
    let ran = keyway(&["train", "digits", "--memory-format", "channels_last"]).expect(2);
    assert!(ran.err.contains("`mlp` has no images") && ran.err.contains("--model cnn"), "{}", ran.err);
}

#[test]
fn everything_asked_for_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (save, plot, json) = (path("w.safetensors"), path("loss.svg"), path("r.json"));
    let arguments = ["train", "digits", "--epochs", "2", "--profile"];
    let files = ["--save", text(&save), "--plot", text(&plot), "--json", text(&json)];
    let ran = keyway(&[arguments.as_slice(), &files].concat()).expect(0);
    for part in ["test accuracy", "SERVED BY", "keyway-cpu", "total", "wrote the weights to"] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    assert!(ran.err.contains("epoch 2/2"), "{}", ran.err);
    assert!(std::fs::read_to_string(&plot).unwrap().contains("mean training loss"));
    let weights = std::fs::read(&save).unwrap();
    let header = String::from_utf8_lossy(&weights[8..300]).into_owned();
    assert!(header.contains("0.weight") && header.contains("F32"), "{header}");
    let results: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert!(
        results["profile"]["rows"].as_array().unwrap().iter().any(|row| row["served_by"] == "keyway-cpu")
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "no drafts are left behind");
}

#[test]
fn without_a_backend_one_sentence_says_what_to_install() {
    let ran = bare(&["train", "digits", "--model", "mlp"]).expect(1);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    for part in ["none is installed", "keyway_backend_cpu", "--backends"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    assert!(ran.out.is_empty());
}

#[test]
fn a_file_that_cannot_be_written_is_named_before_the_training() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("absent/r.json");
    for option in ["--json", "--plot", "--save"] {
        for target in [text(&inside), text(folder.path())] {
            let ran = keyway(&["train", "digits", "--epochs", "1", option, target]).expect(1);
            assert!(ran.err.contains(target) && !ran.err.contains("epoch"), "{}", ran.err);
        }
    }
    let json = folder.path().join("r.json");
    let ran = keyway(&["train", "digits", "--json", text(&json), "--save", text(&json)]).expect(2);
    assert!(ran.err.contains("cannot both go to"), "{}", ran.err);
}

#[test]
#[cfg(target_os = "linux")]
fn one_file_that_fails_keeps_none_of_the_others_back() {
    let folder = tempfile::tempdir().unwrap();
    let save = folder.path().join("w.safetensors");
    let ran =
        keyway(&["train", "digits", "--epochs", "1", "--json", "/dev/full", "--save", text(&save)]).expect(1);
    assert!(ran.err.contains("cannot write the results to /dev/full"), "{}", ran.err);
    assert!(ran.out.contains("test accuracy") && ran.out.contains("wrote the weights"), "{}", ran.out);
    assert!(save.exists());
}

#[test]
fn wrong_options_are_wrong_usage() {
    for (arguments, part) in [
        (vec!["train"], "DATASET"),
        (vec!["train", "letters"], "digits, cifar10, graph"),
        (vec!["train", "digits", "--model", "rnn"], "cnn, three-layer, bag, gcn"),
        (vec!["train", "digits", "--epochs", "0"], "--epochs"),
        (vec!["train", "digits", "--batch", "0"], "--batch"),
        (vec!["train", "digits", "--lr", "-1"], "--lr"),
        (vec!["train", "digits", "--lr=nan"], "above 0"),
        (vec!["train", "digits", "--threads", "0"], "--threads"),
        (vec!["train", "digits", "--device", "tpu"], "there is: cpu"),
        (vec!["train", "digits", "--device", "cpu:3"], "cpu:3"),
    ] {
        let ran = keyway(&arguments).expect(2);
        assert!(ran.err.contains(part), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn a_training_that_diverges_says_so() {
    let ran = keyway(&["train", "digits", "--epochs", "5", "--lr", "1e30"]).expect(1);
    assert!(ran.err.contains("diverged") && ran.err.contains("--lr"), "{}", ran.err);
}

#[test]
fn a_reader_that_goes_away_does_not_stop_the_training() {
    let folder = tempfile::tempdir().unwrap();
    let save = folder.path().join("w.safetensors");
    let mut command = program(&library());
    command
        .args(["train", "digits", "--epochs", "1", "--save", text(&save)])
        .stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(save.exists());
}

/// Writes CIFAR-10's files with `records` records each: images of one colour that depends on the class, with some noise.
fn cifar(folder: &Path, records: usize) {
    use keyway::data::cifar::{PIXELS, TEST_FILE, TRAIN_FILES};
    for (file, name) in TRAIN_FILES.into_iter().chain([TEST_FILE]).enumerate() {
        let mut rng = keyway::rng::Philox::new(file as u64);
        let mut bytes = Vec::new();
        for record in 0..records {
            let class = record % 10;
            bytes.push(class as u8);
            for colour in 0..3 {
                let bright = if class >> colour & 1 == 1 { 160 } else { 40 } + 20 * u64::from(class > 7);
                bytes.extend((0..PIXELS / 3).map(|_| (bright + rng.below(40)) as u8));
            }
        }
        std::fs::write(folder.join(name), bytes).unwrap();
    }
}

/// Trains on photographs whose colour depends on their class; more than half of them are classified correctly.
fn learn_photographs(model: &str, described: &str, format: &str) {
    let folder = tempfile::tempdir().unwrap();
    cifar(folder.path(), 20);
    let json = folder.path().join("r.json");
    let arguments = ["train", "cifar10", "--model", model, "--epochs", "4", "--batch", "10", "--lr", "0.005"];
    let files = ["--data", text(folder.path()), "--memory-format", format, "--json", text(&json)];
    let ran = keyway(&[arguments.as_slice(), &files].concat()).expect(0);
    assert!(ran.out.contains(&format!("{model} on cifar10: 4 epochs")), "{}", ran.out);
    assert!(ran.out.contains(described), "{}", ran.out);
    let results: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!((&results["train_rows"], &results["test_rows"]), (&100.into(), &20.into()));
    let losses = results["train_loss"].as_array().unwrap();
    assert!(losses[3].as_f64() < losses[0].as_f64(), "{losses:?}");
    assert!(results["test_accuracy"].as_f64().unwrap() >= 0.5, "{results}");
}

#[test]
fn a_network_of_convolutions_learns_photographs() {
    learn_photographs("cnn", "3-32-64 channels, 16384-128-10 layers", "channels_last");
}

#[test]
fn smaller_networks_learn_photographs() {
    learn_photographs("mlp", "3072-128-64-10 layers", "contiguous");
    for format in ["contiguous", "channels_last"] {
        learn_photographs("three-layer", "3-32 channels, 8192-100-10 layers", format);
    }
}

#[test]
fn the_three_layer_network_learns_the_digits() {
    let ran = keyway(&["train", "digits", "--model", "three-layer", "--epochs", "8"]).expect(0);
    let accuracy = ran.out.split("test accuracy ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    assert!(accuracy.parse::<f64>().unwrap() > 0.85, "{}", ran.out);
}

#[test]
fn a_data_set_that_is_damaged_is_named_before_the_training() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("r.json");
    let fault = |part: &str| {
        let arguments = ["train", "cifar10", "--data", text(folder.path()), "--json", text(&json)];
        let ran = keyway(&arguments).expect(1);
        assert!(ran.err.contains(part) && ran.err.contains(text(folder.path())), "{part}: {}", ran.err);
        assert!(ran.out.is_empty() && !json.exists());
    };
    fault("but data_batch_1.bin, data_batch_2.bin and 4 more are not there; unpack");
    cifar(folder.path(), 3);
    let path = folder.path().join("data_batch_2.bin");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    fault("data_batch_2.bin: expected whole records of 3073 bytes");
    std::fs::write(&path, &whole[..2 * 3073]).unwrap();
    fault("data_batch_2.bin: expected 3 records, got 2");
    let mut mislabelled = whole;
    mislabelled[3073] = 10;
    std::fs::write(&path, &mislabelled).unwrap();
    fault("data_batch_2.bin, record 2 (byte 3073): expected a label in 0..=9, got 10");
    std::fs::write(&path, b"").unwrap();
    fault("data_batch_2.bin: expected records of 1 + 3,072 bytes, got an empty input");
    std::fs::remove_file(&path).unwrap();
    fault("but data_batch_2.bin is not there");
}

#[test]
fn only_a_data_set_of_files_has_a_folder() {
    let ran = keyway(&["train", "cifar10"]).expect(2);
    assert!(ran.err.contains("--data DIR"), "{}", ran.err);
    let ran = keyway(&["train", "digits", "--data", "."]).expect(2);
    assert!(ran.err.contains("leave `--data` out"), "{}", ran.err);
}

#[test]
fn a_negative_number_is_an_error_with_what_was_expected() {
    for (arguments, part) in [
        (["train", "digits", "--seed", "-1"].as_slice(), "expected an integer from 0"),
        (&["train", "digits", "--epochs", "-1"], "-1 is not in 1.."),
        (&["train", "digits", "--threads", "-1"], "-1 is not in 1.."),
        (&["conformance", "--seed", "-1"], "expected an integer from 0"),
        (&["conformance", "--jobs", "-1"], "-1 is not in 1.."),
    ] {
        let ran = keyway(arguments).expect(2);
        assert!(ran.err.contains(part) && !ran.err.contains("-- -1"), "{arguments:?}: {}", ran.err);
    }
}
