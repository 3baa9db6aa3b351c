//! `cargo xtask demo`: from the sources to a trained network, through backends that are loaded at run time.

use crate::dist;
use crate::failure::{Failure, Result};
use crate::workspace::{self, Workspace};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The options of `cargo xtask demo`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Train for a few epochs only.
    #[arg(long)]
    pub short: bool,
}

/// The only backend that the training needs, so that the demo's time does not grow with the number of backends.
const BACKEND: &str = "cpu";
/// Further folders in which the program looks for backends.
const BACKENDS: &str = "KEYWAY_BACKEND_PATH";
const EPOCHS: &str = "60";
const SHORT_EPOCHS: &str = "5";
const SEED: &str = "0";

/// The files that the training writes, with their options.
const RESULTS: &[(&str, &str, &str)] = &[
    ("--plot", "out/loss.svg", "the loss curve"),
    ("--save", "out/digits.safetensors", "the weights"),
    ("--json", "out/train.json", "the figures of this run"),
];

/// Stages `dist/`, lists the backends and trains.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let start = Instant::now();
    heading("Building the program and the backend for the CPU");
    let backends = vec![BACKEND.to_string()];
    dist::run(workspace, &dist::Options { native: true, backends })?;
    let built = start.elapsed();

    let program = dist::program(workspace);
    let out = workspace.path("out");
    std::fs::create_dir_all(&out).map_err(Failure::file("make", &out))?;
    for (_, path, _) in RESULTS {
        remove_if_there(workspace, path)?;
    }

    heading("The backends that the program finds");
    let listed = workspace::run(
        staged(workspace, &program).args(["backend", "list"]),
        "the program's messages stand above",
    );
    // A library in another folder that cannot be used is reported, and does not stop the demo.
    if let Err(failure @ Failure::Start { .. }) = listed {
        return Err(failure);
    }

    heading("Training on the handwritten digits");
    let mut train = staged(workspace, &program);
    train.args(arguments(options.short));
    eprintln!("$ dist/bin/{}", workspace::line(&train));
    workspace::run(
        &mut train,
        "the program's messages stand above; `dist/bin/keyway doctor` says what was found",
    )?;

    heading("Written");
    for (_, path, what) in RESULTS {
        let whole = workspace.path(path);
        let bytes = std::fs::metadata(&whole)
            .map_err(Failure::file("find what the training should write,", &whole))?;
        println!("{path:<24} {what}, {} bytes", bytes.len());
    }
    println!("{:<24} the program and its backends; the folder runs anywhere", "dist/");
    println!("built in {:.0} s, {:.0} s in all", built.as_secs_f64(), start.elapsed().as_secs_f64());
    Ok(())
}

/// The staged program, which finds the staged backends by itself. Cargo passes the path of the tests' library to its child
/// processes; that library need not be built.
fn staged(workspace: &Workspace, program: &Path) -> Command {
    let mut command = workspace.command(program);
    let named = std::env::var_os(BACKENDS).map(PathBuf::from);
    if named.is_some_and(|path| path.starts_with(&workspace.root)) {
        command.env_remove(BACKENDS);
    }
    command
}

fn arguments(short: bool) -> Vec<&'static str> {
    let epochs = if short { SHORT_EPOCHS } else { EPOCHS };
    let mut arguments = vec!["train", "digits", "--model", "mlp", "--epochs", epochs, "--seed", SEED];
    arguments.extend(RESULTS.iter().flat_map(|(option, path, _)| [*option, *path]));
    arguments.push("--profile");
    arguments
}

/// Removes a result of an earlier run, so that a file found afterwards is this run's.
fn remove_if_there(workspace: &Workspace, path: &str) -> Result<()> {
    let whole = workspace.path(path);
    match std::fs::remove_file(&whole) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::file("remove", &whole)(error))
        }
        _ => Ok(()),
    }
}

fn heading(text: &str) {
    println!("\n== {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_training_is_the_documented_command() {
        assert_eq!(
            arguments(false).join(" "),
            "train digits --model mlp --epochs 60 --seed 0 --plot out/loss.svg --save out/digits.safetensors \
             --json out/train.json --profile"
        );
        assert!(arguments(true).join(" ").contains("--epochs 5 "));
    }
}
