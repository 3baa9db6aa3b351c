//! `cargo xtask bench`: the cases of `benches/`, one JSON line each on the standard output.
//!
//! The bench program writes the lines (see `keyway_benches::case`) into the file that `KEYWAY_BENCH_LINES` names;
//! criterion's own report goes to the error output, so that the standard output holds JSON lines only.

use crate::dist;
use crate::failure::{Failure, Result};
use crate::workspace::{self, Workspace};
use std::process::Stdio;

/// The options of `cargo xtask bench`.
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
    /// Run the sweep over all ops, dtypes and ways to lie in memory instead; the filter is a part of a case's name.
    #[arg(long, conflicts_with = "growth")]
    pub sweep: bool,
}

/// Stages the backends for this CPU, runs the cases and prints the lines.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    dist::build_and_stage(workspace, &dist::Options { native: true, ..Default::default() })?;
    let bench = |name: &str| {
        let mut bench = workspace.cargo();
        bench.args(["bench", "--package", "keyway-benches", "--bench", name]);
        bench
            .env("KEYWAY_BENCH_THREADS", options.threads.to_string())
            .env("RAYON_NUM_THREADS", options.threads.to_string())
            .env("KEYWAY_BACKEND_PATH", workspace.path("dist/backends"));
        bench
    };
    if options.growth {
        return workspace::run(&mut bench("growth"), "the messages stand above");
    }
    if options.sweep {
        let mut sweep = bench("sweep");
        sweep.arg("--").args(&options.filter);
        return workspace::run(&mut sweep, "the messages stand above");
    }
    let results = workspace.target().join("criterion");
    std::fs::create_dir_all(&results).map_err(Failure::file("make", &results))?;
    let lines = results.join("lines.jsonl");
    std::fs::write(&lines, "").map_err(Failure::file("empty", &lines))?;

    let mut bench = bench("keyway");
    bench.args(["--", "--noplot"]);
    bench.args(&options.filter);
    bench
        .env("CRITERION_HOME", &results)
        .env("KEYWAY_BENCH_LINES", &lines)
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
