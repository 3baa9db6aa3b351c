//! Trainings that are killed and resumed.

mod support;

use keyway::io::safetensors;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::{keyway, library, library_of, program};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The results of a run.
struct Left {
    results: Value,
    /// Parameters and buffers.
    weights: Vec<u8>,
    err: String,
}

/// Trains to the end, with `backends`.
fn train(folder: &Path, backends: &Path, arguments: &[&str]) -> Left {
    let (json, save) = (folder.join("r.json"), folder.join("w.safetensors"));
    let mut command = program(backends);
    command.arg("train").args(arguments).args(["--json", text(&json), "--save", text(&save)]);
    let ran = support::run(command).expect(0);
    let results = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    Left { results, weights: std::fs::read(&save).unwrap(), err: ran.err }
}

fn metadata(path: &Path) -> BTreeMap<String, String> {
    let bytes = std::fs::read(path).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + header]).unwrap();
    serde_json::from_value(header["__metadata__"].clone()).unwrap()
}

/// Starts a training and kills it once a checkpoint exists; returns the number of epochs in the checkpoint.
fn kill(checkpoint: &Path, backends: &Path, arguments: &[&str]) -> usize {
    let mut command = program(backends);
    command.arg("train").args(arguments).args(["--checkpoint", text(checkpoint)]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while !checkpoint.exists() {
        assert!(start.elapsed() < Duration::from_secs(240), "no checkpoint");
        assert_eq!(child.try_wait().unwrap().map(|status| status.code()), None, "ended before it was killed");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "ended before it was killed");
    metadata(checkpoint)["epoch"].parse().unwrap()
}

fn assert_same(whole: &Left, resumed: &Left) {
    for name in
        ["weights_sha256", "train_loss", "test_right", "epochs", "lr", "seed", "memory_format", "batch"]
    {
        assert_eq!(whole.results[name], resumed.results[name], "{name}");
    }
    assert_eq!(whole.weights, resumed.weights);
}

/// Both libraries in one folder.
fn both() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["keyway_backend_cpu", "keyway_backend_channels_last"] {
        let from = library_of(name);
        std::fs::copy(&from, folder.path().join(from.file_name().unwrap())).unwrap();
    }
    folder
}

/// Kills a training, resumes it from its checkpoint alone, and compares it with one that was not killed.
fn kill_and_resume(arguments: &[&str], epochs: usize) {
    let (backends, folder) = (both(), tempfile::tempdir().unwrap());
    let whole = train(folder.path(), backends.path(), arguments);
    let checkpoint = folder.path().join("c.safetensors");
    let done = kill(&checkpoint, backends.path(), arguments);
    assert!((1..epochs).contains(&done), "{done}");

    let resumed =
        train(folder.path(), backends.path(), &["digits", "--resume", text(&checkpoint), "--threads", "1"]);
    assert!(
        resumed.err.contains(&format!("going on after epoch {done} of {epochs} from")),
        "{}",
        resumed.err
    );
    assert_same(&whole, &resumed);
    assert!(resumed.results["seconds"].as_f64() > Some(0.0));
    assert_eq!(metadata(&checkpoint)["epoch"], epochs.to_string());

    // After the last epoch no work is left.
    let again = [arguments, &["--resume", text(&checkpoint)]].concat();
    let again = train(folder.path(), backends.path(), &again);
    assert!(again.err.contains(&format!("all {epochs} epochs of")), "{}", again.err);
    assert_same(&whole, &again);
}

#[test]
fn a_killed_mlp_ends_with_the_bits_of_one_that_was_not() {
    kill_and_resume(&["digits", "--epochs", "15", "--lr", "0.07", "--seed", "9", "--batch", "48"], 15);
}

#[test]
fn a_killed_cnn_ends_with_the_bits_of_one_that_was_not() {
    kill_and_resume(&["digits", "--model", "cnn", "--epochs", "3", "--batch", "64"], 3);
}

#[test]
fn a_killed_cnn_in_channels_last_ends_with_the_bits_of_one_that_was_not() {
    let format = ["--memory-format", "channels_last"];
    kill_and_resume(
        &[["digits", "--model", "cnn", "--epochs", "3", "--batch", "128"].as_slice(), &format].concat(),
        3,
    );
}

#[test]
fn a_training_that_is_killed_twice_goes_on_in_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["1.safetensors", "2.safetensors"].map(|name| folder.path().join(name));
    let arguments = ["digits", "--model", "cnn", "--epochs", "4", "--batch", "64"];
    let whole = train(folder.path(), &library(), &arguments);
    let done = kill(&first, &library(), &arguments);
    let bytes = std::fs::read(&first).unwrap();
    let later = kill(&second, &library(), &["digits", "--resume", text(&first)]);
    assert!(done < later && later < 4, "{done}, {later}");
    assert_eq!(std::fs::read(&first).unwrap(), bytes, "the other file is named by `--checkpoint`");
    assert_same(&whole, &train(folder.path(), &library(), &["digits", "--resume", text(&second)]));
    let left = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.count(), 4, "no drafts are left behind");
}

/// Inserts text into the metadata.
fn note(file: &mut safetensors::File, key: &str, text: &str) {
    file.metadata.insert(key.to_string(), text.to_string());
}

/// A finished training of one epoch; its checkpoint and its weights.
fn finished(folder: &Path) -> (PathBuf, PathBuf) {
    let (checkpoint, save) = (folder.join("c.safetensors"), folder.join("w.safetensors"));
    let arguments = ["train", "digits", "--model", "cnn", "--epochs", "1", "--batch", "200", "--seed", "3"];
    let files = ["--checkpoint", text(&checkpoint), "--save", text(&save)];
    let ran = keyway(&[arguments.as_slice(), &files].concat()).expect(0);
    assert!(ran.out.contains("wrote the checkpoint to"), "{}", ran.out);
    (checkpoint, save)
}

#[test]
fn a_checkpoint_of_another_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (checkpoint, _) = finished(folder.path());
    let before = std::fs::read(&checkpoint).unwrap();
    let json = folder.path().join("r.json");
    for (arguments, parts) in [
        (
            vec!["digits", "--model", "mlp"],
            vec!["`--model cnn` there and `--model mlp` here", "leave these options out"],
        ),
        (vec!["digits", "--epochs", "2"], vec!["`--epochs 1` there and `--epochs 2` here"]),
        (vec!["digits", "--lr", "0.5"], vec!["`--lr 0.02` there and `--lr 0.5` here"]),
        (
            vec!["digits", "--seed", "4", "--batch", "100"],
            vec!["`--batch 200` there and `--batch 100` here", "`--seed 3` there and `--seed 4` here"],
        ),
        (
            vec!["digits", "--memory-format", "channels_last"],
            vec!["`--memory-format contiguous` there and `--memory-format channels_last` here"],
        ),
        (vec!["cifar10", "--data", "."], vec!["`digits` there and `cifar10` here", "train `digits` without"]),
    ] {
        let files = ["--resume", text(&checkpoint), "--json", text(&json)];
        let ran = keyway(&[["train"].as_slice(), &arguments, &files].concat()).expect(2);
        for part in parts.iter().chain(&["of another run", text(&checkpoint)]) {
            assert!(ran.err.contains(part), "{part}: {}", ran.err);
        }
        assert!(!json.exists() && ran.out.is_empty());
        assert_eq!(std::fs::read(&checkpoint).unwrap(), before);
    }
}

#[test]
fn a_file_that_is_no_checkpoint_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (checkpoint, weights) = finished(folder.path());
    let path = |name: &str| folder.path().join(name);
    let whole = std::fs::read(&checkpoint).unwrap();
    std::fs::write(path("cut"), &whole[..whole.len() - 3]).unwrap();
    // Tensors and metadata of a checkpoint with one change.
    let changed = |name: &str, change: fn(&mut safetensors::File)| {
        let mut file = safetensors::load_file(&checkpoint).unwrap();
        // As from an older program: otherwise the checksum would be reported first.
        assert!(file.metadata.remove("keyway.checkpoint_sha256").is_some());
        change(&mut file);
        safetensors::save_with_metadata(path(name), &file.tensors, &file.metadata).unwrap();
        path(name)
    };
    for (file, part) in [
        (weights, "a file of weights only cannot be resumed"),
        (path("cut"), "cut"),
        (path("absent"), "No such file"),
        (
            changed("version", |file| note(file, "keyway.checkpoint", "2")),
            "expected version 1 of checkpoints, got \"2\"",
        ),
        (changed("epochs", |file| note(file, "epochs", "none")), "does not state its progress"),
        (changed("far", |file| note(file, "epoch", "7")), "1 losses after epoch 7 of 1"),
        (changed("model", |file| note(file, "model", "rnn")), "lacks a value that can be read of model"),
        (changed("dtype", |file| note(file, "dtype", "f64")), "lacks a value that can be read of dtype"),
        (changed("data", |file| note(file, "data_sha256", "00")), "trained on other data, of SHA-256 00"),
        (
            changed("weight", |file| {
                file.tensors.remove("model.0.weight");
            }),
            "1 missing: 0.weight",
        ),
        (
            changed("generator", |file| {
                file.tensors.remove("generators.7.generator");
            }),
            "1 missing: 7.generator",
        ),
        (
            changed("momentum", |file| {
                let other = file.tensors["losses"].clone();
                file.tensors.insert("optimizer.state.0.momentum".to_string(), other);
            }),
            "state.0.momentum (expected [32, 1, 3, 3], got [1])",
        ),
    ] {
        let before = std::fs::read(&file).ok();
        let ran = keyway(&["train", "digits", "--resume", text(&file)]).expect(1);
        assert!(ran.err.contains(part) && ran.err.contains(text(&file)), "{part}: {}", ran.err);
        assert!(ran.out.is_empty());
        assert_eq!(std::fs::read(&file).ok(), before);
    }
}

#[test]
fn a_damaged_checkpoint_is_refused_and_one_without_a_sum_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (checkpoint, _) = finished(folder.path());
    let whole = std::fs::read(&checkpoint).unwrap();
    let header = 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let lr = (0..header).find(|at| whole[*at..].starts_with(b"0.02")).unwrap();
    for at in [lr + 3, header, header + (whole.len() - header) / 2, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        std::fs::write(&checkpoint, &damaged).unwrap();
        let ran = keyway(&["train", "digits", "--resume", text(&checkpoint)]).expect(1);
        assert!(ran.err.contains("it is damaged: expected content of SHA-256"), "{at}: {}", ran.err);
        assert!(ran.out.is_empty() && std::fs::read(&checkpoint).unwrap() == damaged);
    }
    std::fs::write(&checkpoint, &whole).unwrap();
    keyway(&["train", "digits", "--resume", text(&checkpoint)]).expect(0);
    let mut file = safetensors::load_file(&checkpoint).unwrap();
    file.metadata.remove("keyway.checkpoint_sha256");
    safetensors::save_with_metadata(&checkpoint, &file.tensors, &file.metadata).unwrap();
    keyway(&["train", "digits", "--resume", text(&checkpoint)]).expect(0);
}

#[test]
fn a_checkpoint_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent/c.safetensors");
    let ran = keyway(&["train", "digits", "--checkpoint", text(&absent)]).expect(1);
    assert!(ran.err.contains("cannot write the checkpoint to"), "{}", ran.err);
    let same = folder.path().join("c.safetensors");
    let ran = keyway(&["train", "digits", "--checkpoint", text(&same), "--save", text(&same)]).expect(2);
    assert!(ran.err.contains("the weights and the checkpoint cannot both go to"), "{}", ran.err);
    #[cfg(target_os = "linux")]
    {
        let ran = keyway(&["train", "digits", "--epochs", "1", "--checkpoint", "/dev/full"]).expect(1);
        assert!(ran.err.contains("/dev/full"), "{}", ran.err);
    }
}
