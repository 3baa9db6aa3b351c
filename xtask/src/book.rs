//! `cargo xtask book`: the book as HTML, in `target/book`.
//!
//! mdBook is taken from the path, or from `target/tools`, where it is installed if it is in neither. Where it cannot be installed,
//! the task is skipped, with the reason.

use crate::failure::{Failure, Result};
use crate::workspace::{self, Workspace};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The program, and its package.
const MDBOOK: &str = "mdbook";

/// Builds the book.
pub fn run(workspace: &Workspace) -> Result<()> {
    let program = match program(workspace) {
        Ok(program) => program,
        Err(failure) => return workspace::skipped("book", &failure.to_string()),
    };
    let target = workspace.target().join("book");
    let mut command = workspace.command(program);
    command.arg("build").arg("--dest-dir").arg(&target).arg("book");
    workspace::run(&mut command, "the lines above name the page")?;
    let page = target.join("index.html");
    // mdBook reports an include that it cannot read, and succeeds.
    let print = std::fs::read_to_string(target.join("print.html")).map_err(Failure::file("read", &target))?;
    if print.contains("{{#include") {
        return Err(Failure::Output {
            command: workspace::line(&command),
            expected: "pages without an include that cannot be read",
            got: "`{{#include`".to_owned(),
        });
    }
    println!("book: {}", page.display());
    Ok(())
}

/// mdBook, installed if it is missing.
fn program(workspace: &Workspace) -> Result<PathBuf> {
    let starts = |program: &PathBuf| {
        let mut command = Command::new(program);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let tools = workspace.target().join("tools");
    let own = tools.join("bin").join(MDBOOK).with_extension(std::env::consts::EXE_EXTENSION);
    if let Some(there) = [PathBuf::from(MDBOOK), own.clone()].into_iter().find(starts) {
        return Ok(there);
    }
    let mut install = workspace.cargo();
    // Without its server, and unoptimised: the build takes a quarter of the time, and the book a second more.
    install.args(["install", MDBOOK, "--locked", "--debug", "--no-default-features", "--features", "search"]);
    install.arg("--root").arg(&tools);
    workspace::run(&mut install, "install mdBook by hand, or run this task where crates can be fetched")?;
    Ok(own)
}
