//! The output and files of `keyway train --profile`, and `keyway profile show` on them.

mod support;

use keyway::profiler;
use std::path::Path;
use support::keyway;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The lines of the table and of what follows it.
fn table(shown: &str) -> Vec<&str> {
    shown
        .lines()
        .skip_while(|line| !line.starts_with("OP "))
        .take_while(|line| !line.starts_with("wrote"))
        .collect()
}

#[test]
fn the_table_is_shown_again_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.json");
    let ran = keyway(&[
        "train",
        "digits",
        "--model",
        "cnn",
        "--epochs",
        "1",
        "--memory-format",
        "channels_last",
        "--profile",
        text(&file),
    ])
    .expect(0);
    assert!(ran.out.contains("wrote the trace to"), "{}", ran.out);
    let [shown, _] = &ran.shown;
    assert!(shown.lines().all(|line| line.chars().count() <= 80 || line.contains(text(&file))), "{shown}");
    for part in
        ["SERVED BY", "keyway-cpu", "cpu/strided/f32", "f32[32,32,8,8] channels_last", "%", "BYTES", "total"]
    {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    assert!(ran.out.contains("scratch memory that kernels took"), "{}", ran.out);
    assert!(ran.out.contains("  conv_weight_grad by keyway-"), "{}", ran.out);
    // Once each, when the model is laid out: the kernels of its second convolution and of the layer over all pixels.
    assert!(ran.out.contains("copies that reorder memory: 2 calls"), "{}", ran.out);
    assert!(ran.out.contains("clone by the program itself: 2 calls"), "{}", ran.out);
    assert!(!ran.out.contains("warning: "), "no op changes the format: {}", ran.out);

    let again = keyway(&["profile", "show", text(&file)]).expect(0);
    assert_eq!(table(&again.shown[0]), table(shown));
    assert!(table(shown).len() > 30, "{shown}");
    let few = keyway(&["profile", "show", text(&file), "--rows", "2"]).expect(0);
    assert!(few.out.contains(" others ") && !few.out.contains("\nrelu "), "{}", few.out);
    let json = keyway(&["profile", "show", text(&file), "--json"]).expect(0).json();
    assert!(json["rows"].as_array().unwrap().iter().any(|row| row["op"] == "conv_weight_grad"), "{json}");

    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let ran = keyway(&["profile", "show", text(&file)]).expect(1);
    assert!(
        ran.err.contains(text(&file)) && ran.err.contains("damaged") && ran.out.is_empty(),
        "{}",
        ran.err
    );
    std::fs::write(&file, "{\"traceEvents\":[]}").unwrap();
    let ran = keyway(&["profile", "show", text(&file)]).expect(1);
    assert!(ran.err.contains("other JSON, of memory or of another program"), "{}", ran.err);
    let ran = keyway(&["profile", "show", text(&folder.path().join("absent.json"))]).expect(1);
    assert!(ran.err.contains("absent.json") && ran.err.contains("No such file"), "{}", ran.err);
    keyway(&["profile", "show"]).expect(2);
}

#[test]
fn the_option_takes_a_file_or_none_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.json");
    let equals = format!("--profile={}", text(&file));
    for (arguments, writes) in [
        (vec!["digits", "--profile", text(&file), "--epochs", "1"], true),
        (vec!["digits", "--epochs", "1", &equals], true),
        (vec!["--profile", text(&file), "digits", "--epochs", "1"], true),
        (vec![&equals, "--epochs", "1", "digits"], true),
        (vec!["digits", "--profile", "--epochs", "1"], false),
        (vec!["digits", "--epochs", "1", "--profile"], false),
        (vec!["--profile", "digits", "--epochs", "1"], false),
        (vec!["--epochs", "1", "--profile", "digits"], false),
    ] {
        let ran = keyway(&[&["train"], arguments.as_slice()].concat()).expect(0);
        assert!(ran.out.contains("SERVED BY"), "{arguments:?}: {}", ran.out);
        assert_eq!(file.exists(), writes, "{arguments:?}");
        let _ = std::fs::remove_file(&file);
    }
    let ran = keyway(&["train", "--profile", text(&file)]).expect(2);
    assert!(ran.err.contains("DATASET") && ran.err.contains("`digits`"), "{}", ran.err);
    let inside = folder.path().join("absent/trace.json");
    let ran = keyway(&["train", "digits", "--profile", text(&inside)]).expect(1);
    assert!(ran.err.contains("the trace") && !ran.err.contains("epoch"), "{}", ran.err);
}

#[test]
fn the_memory_profile_is_a_page_or_json() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let page = file("memory");
    let ran = keyway(&["train", "digits", "--epochs", "1", "--profile-memory", text(&page)]).expect(0);
    assert!(ran.out.contains("wrote the memory profile to"), "{}", ran.out);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("\"op\":\"relu\""));
    let json = file("memory.JSON");
    keyway(&["train", "digits", "--epochs", "1", "--profile-memory", text(&json)]).expect(0);
    let read: profiler::MemorySnapshot = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let [cpu] = read.devices.as_slice() else { panic!("one device: {:?}", read.devices) };
    assert!(cpu.usage.peak_bytes > cpu.usage.bytes && cpu.usage.bytes > 0);
    // Each byte has an owner: the weights, at least.
    assert_eq!(read.owners.iter().map(|owner| owner.bytes).sum::<u64>(), cpu.usage.bytes);
    assert_eq!(read.ops.iter().map(|op| op.bytes_at_peak).sum::<u64>(), cpu.usage.peak_bytes);
    let ran = keyway(&["train", "digits", "--profile-memory", text(&file("none/memory.html"))]).expect(1);
    assert!(ran.err.contains("the memory profile"), "{}", ran.err);
}
