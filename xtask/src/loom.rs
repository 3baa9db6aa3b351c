//! `cargo xtask loom`: the models of what is free of locks.
//!
//! Under `cfg(loom)` the dispatcher's counted pointer and published pointer take loom's atomics, and loom runs each model
//! in every order of its threads' steps that the memory orderings allow.

use crate::failure::{Failure, Result};
use crate::test;
use crate::workspace::{self, Workspace};

/// The package with the models, and the module that they lie in.
const MODELS: (&str, &str) = ("keyway-dispatcher", "loom_tests");
/// How often a model's threads are interrupted at places where they could go on. Most errors need two interruptions, and
/// each one more takes many times as long.
const PREEMPTIONS: &str = "3";

/// The models take seconds, and most of what is built is not run: nothing is worth the compiler's time.
const SETTING: &str = "profile.dev.opt-level=0";

/// Builds and runs the models, in a target folder of their own: the flag is part of every crate's identity.
pub fn run(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.cargo();
    command
        .args(["test", "--package", MODELS.0, "--lib", "--target-dir"])
        .arg(workspace.target().join("loom"));
    command.args(["--config", SETTING, "--", MODELS.1]);
    command.env("RUSTFLAGS", flags(std::env::var("RUSTFLAGS").ok())).env("LOOM_MAX_PREEMPTIONS", PREEMPTIONS);
    let tally = test::follow(&mut command)?;
    if tally.all_failed() > 0 {
        return Err(Failure::Tests { failed: tally.failed, broken: tally.broken });
    }
    if tally.passed == 0 {
        return Err(Failure::NoTests { command: workspace::line(&command), file: "loom.rs" });
    }
    println!("loom: {} models hold", tally.passed);
    Ok(())
}

/// The caller's flags and the one that switches the models on.
fn flags(own: Option<String>) -> String {
    let own = own.unwrap_or_default();
    format!("{own} --cfg loom").trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callers_flags_stay() {
        assert_eq!(flags(None), "--cfg loom");
        assert_eq!(flags(Some("-Dwarnings".to_owned())), "-Dwarnings --cfg loom");
    }
}
