//! `cargo xtask bench`: the cases of `benches/`, one JSON line each on the standard output.
//!
//! The bench program writes the lines (see `keyway_benches::case`) into the file that `KEYWAY_BENCH_LINES` names;
//! criterion's own report goes to the error output, so that the standard output holds JSON lines only.

use crate::dist;
use crate::failure::{Failure, Result};
use crate::workspace::{self, Workspace};
use std::process::Stdio;

/// Which cases, and how.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Run only the cases whose names match this regular expression.
    #[arg(long)]
    pub filter: Option<String>,
    /// How many threads kernels may use.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Measure the start of a program with many plugins instead.
    #[arg(long, conflicts_with = "filter")]
    pub growth: bool,
}

/// Stages the backends for this CPU, runs the cases and prints the lines.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    dist::build_and_stage(workspace, &dist::Options { native: true })?;
    if options.growth {
        let mut bench = workspace.cargo();
        bench.args(["bench", "--package", "keyway-benches", "--bench", "growth"]);
        bench.env("KEYWAY_BACKEND_PATH", workspace.path("dist/backends"));
        return workspace::run(&mut bench, "the messages stand above");
    }
    let results = workspace.target().join("criterion");
    std::fs::create_dir_all(&results).map_err(Failure::file("make", &results))?;
    let lines = results.join("lines.jsonl");
    std::fs::write(&lines, "").map_err(Failure::file("empty", &lines))?;

    let threads = options.threads.to_string();
    let mut bench = workspace.cargo();
    bench.args(["bench", "--package", "keyway-benches", "--bench", "keyway", "--", "--noplot"]);
    bench.args(&options.filter);
    bench
        .env("CRITERION_HOME", &results)
        .env("KEYWAY_BENCH_LINES", &lines)
        .env("KEYWAY_BENCH_THREADS", &threads)
        .env("KEYWAY_BACKEND_PATH", workspace.path("dist/backends"))
        .env("RAYON_NUM_THREADS", &threads)
        .stdout(Stdio::from(std::io::stderr()));
    workspace::run(&mut bench, "the messages stand above")?;

    let text = std::fs::read_to_string(&lines).map_err(Failure::file("read", &lines))?;
    if text.is_empty() {
        return Err(Failure::Output {
            command: workspace::line(&bench),
            expected: "at least one case whose name matches the filter",
            got: options.filter.clone().unwrap_or_default(),
        });
    }
    print!("{text}");
    Ok(())
}
