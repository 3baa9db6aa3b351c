//! `cargo xtask loom`: models of the lock-free data structures.
//!
//! Under `cfg(loom)` the dispatcher's reference-counted pointer and published pointer use loom's atomics, and loom runs each
//! model in every interleaving that the memory orderings allow.

use crate::failure::{Failure, Result};
use crate::test;
use crate::workspace::{self, Workspace};

/// The package with the models, and their module.
const MODELS: (&str, &str) = ("keyway-dispatcher", "loom_tests");
/// Limit on the preemptions of a model's threads. Most errors need two preemptions, and each further one multiplies the time.
const PREEMPTIONS: &str = "3";

/// The models take seconds, and most of the built code never runs: optimisation does not pay.
const SETTING: &str = "profile.dev.opt-level=0";

/// Builds and runs the models, in their own target folder: the flag is part of every crate's identity.
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

/// The caller's flags, with the flag that enables the models.
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
