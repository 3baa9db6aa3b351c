//! The program with two processes, on few epochs.

use std::process::Command;

#[test]
fn two_processes_learn_as_well_as_one() {
    let output = Command::new(env!("CARGO_BIN_EXE_hogwild")).args(["2", "8"]).output().expect("the program");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let accuracy =
        |line: &str| line.rsplit(' ').next().and_then(|number| number.parse::<f64>().ok()).expect("a number");
    let found: Vec<f64> = text.lines().map(accuracy).collect();
    assert!(found.len() == 2 && found[0] > 0.8 && found[0] > found[1] - 0.08, "{text}");
}
