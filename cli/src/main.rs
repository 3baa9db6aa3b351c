//! The `keyway` command.
//!
//! Exit codes: 0, 1 for a run that failed, 2 for wrong usage (also names of ops, devices and dtypes that do not
//! exist), 130 for a run that was interrupted.
#![forbid(unsafe_code)]

mod backend;
mod bench;
mod conformance;
mod devices;
mod doctor;
mod documentation;
mod explain;
mod failure;
mod files;
mod installed;
mod known;
mod machine;
mod names;
mod numbers;
mod ops;
mod plan;
mod profile;
mod screen;
mod train;

use clap::{Parser, Subcommand};
use failure::Failure;
use installed::Choice;
use keyway::dispatcher::host;
use screen::Screen;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

/// Tensors whose kernels come from backends that are found at run time.
#[derive(Parser)]
#[command(name = "keyway", version, arg_required_else_help = true, max_term_width = 80)]
struct Cli {
    #[command(flatten)]
    choice: Choice,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The installed backends: list, install, remove and verify them.
    #[command(subcommand)]
    Backend(backend::Command),
    /// Which ops there are, and who serves each for which dtype.
    Ops(ops::Options),
    /// Why an op is served by whom for one device, layout and dtype.
    Explain(explain::Options),
    /// What was looked at, what was found, and what is wrong with it.
    Doctor(doctor::Options),
    /// Judge a backend, case by case.
    Conformance(conformance::Options),
    /// Train a network.
    Train(train::Options),
    /// Measure a known network: time, memory, and who served it.
    Bench(bench::Options),
    /// Choose the memory format of each layer of a known network by measured times, and report the gain.
    Plan(plan::Options),
    /// The profile of a training with `--profile`: where its time went.
    #[command(subcommand)]
    Profile(profile::Command),
}

fn run(cli: &Cli, screen: &mut Screen) -> Result<(), Failure> {
    match &cli.command {
        Command::Backend(command) => backend::run(command, &cli.choice, screen),
        Command::Ops(options) => ops::run(options, &cli.choice, screen),
        Command::Explain(options) => explain::run(options, &cli.choice, screen),
        Command::Doctor(options) => doctor::run(options, &cli.choice, screen),
        Command::Conformance(options) => conformance::run(options, &cli.choice, screen),
        Command::Train(options) => train::run(options, &cli.choice, screen),
        Command::Bench(options) => bench::run(options, &cli.choice, screen),
        Command::Plan(options) => plan::run(options, &cli.choice, screen),
        Command::Profile(command) => profile::run(command, screen),
    }
}

/// Prints the help, the version, or the error in the arguments that clap reports.
fn show(answer: &clap::Error) -> ExitCode {
    let shown = answer.print().and_then(|()| std::io::stdout().flush());
    match shown {
        Err(error) if !answer.use_stderr() && error.kind() != ErrorKind::BrokenPipe => {
            screen::error(&Failure::write("output", Path::new("standard output"), error));
            ExitCode::FAILURE
        }
        _ => ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2)),
    }
}

fn main() -> ExitCode {
    // Exceeding a limit on file size is an error of the write, not the end of the program.
    host::ignore_file_size_signal();
    keyway::dispatcher::log::set_sink(Box::new(screen::log));
    if let Some(served) = keyway_conformance::runner::summoned() {
        // A runner that has ended needs no more output.
        drop(served);
        return ExitCode::SUCCESS;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(answer) => return show(&answer),
    };
    let mut screen = match &cli.command {
        // A worker communicates with the runner through standard output, and this process loads no backend itself.
        Command::Conformance(_) => Screen::default(),
        _ => Screen::alone(),
    };
    // The suite itself judges the signal or exit that ends a worker.
    let running = (!matches!(cli.command, Command::Conformance(_))).then(host::running);
    let result = run(&cli, &mut screen).and(screen.finish());
    drop(running);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            screen::error(&failure);
            host::leave(failure.exit_code())
        }
    }
}
