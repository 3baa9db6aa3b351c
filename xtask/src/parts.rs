//! `cargo xtask parts`: records the ops that each decomposition calls.

use crate::failure::{Failure, Result};
use crate::test;
use crate::workspace::{self, Workspace};

/// The test that runs every decomposition on its samples, and writes the file if it is asked to.
const TEST: &str = "the_recorded_parts_are_the_ops_that_are_called";

/// Runs the test with the request to write.
pub fn run(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.cargo();
    command.args(["test", "--package", "keyway-tests", "--test", "decompositions", "--", "--exact", TEST]);
    command.env("KEYWAY_RECORD_PARTS", "1");
    let tally = test::follow(&mut command)?;
    if tally.all_failed() > 0 {
        return Err(Failure::Tests { failed: tally.failed, broken: tally.broken });
    }
    if tally.passed == 0 {
        return Err(Failure::NoTests { command: workspace::line(&command), file: "parts.rs" });
    }
    println!("parts: frontend/src/ops/parts.txt is written");
    Ok(())
}
