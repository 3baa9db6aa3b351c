//! The tasks of this repository, run as `cargo xtask TASK`.
//!
//! Each task is one module. A task needs nothing but a Rust toolchain and a C linker: no task runs a script, and a tool outside
//! of the toolchain is used only when the caller asks for it, by an option or by the task about that tool.
#![forbid(unsafe_code)]

mod bench;
mod book;
mod build;
mod cuda;
mod demo;
mod dist;
mod doc;
mod failure;
mod gpu;
mod header;
mod loom;
mod miri;
mod mutants;
mod parts;
mod python;
mod results;
mod test;
mod tidy;
mod workspace;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The tasks of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build the program and the backends in release mode and stage them in `dist/`.
    Dist(dist::Options),
    /// Stage `dist/`, list the backends and train a classifier on the handwritten digits.
    Demo(demo::Options),
    /// Run every test of the workspace and of the example workspaces.
    Test(test::Options),
    /// Generate `plugin-sdk/include/keyway.h` from the Rust definitions of the contract.
    Header,
    /// Run the models of the lock-free data structures in every interleaving of their threads.
    Loom,
    /// Run the unit tests of pointers, lists and strided walks under Miri, which finds undefined behaviour.
    Miri,
    /// Record the ops that each decomposition calls in `frontend/src/ops/parts.txt`.
    Parts,
    /// Check the rules that the compiler does not check.
    Tidy(tidy::Options),
    /// Make the documentation without a warning, and find what users have no example of.
    Doc,
    /// Build the book as HTML in `target/book`; mdBook is installed into `target/tools` if it is missing.
    Book,
    /// Judge the CPU backend with one fault at a time, and show which faults the conformance suite finds.
    Mutants(mutants::Options),
    /// Compile the kernels for NVIDIA's GPUs, or compare their images; build the stand-in for the driver.
    #[command(subcommand)]
    Cuda(cuda::Task),
    /// Stage `dist/` and, in `dist/gpu`, tests, benches and a script that runs everything on a machine with a GPU.
    Gpu,
    /// Build the wheels of the Python package in `dist/wheels`; needs CPython 3.11 or later and maturin, which it installs.
    Wheel,
    /// Run the public suite of the array API standard, from a checkout of it, on the Python package.
    ArrayApi(python::ArrayApi),
    /// Run the benches and print one JSON line a case.
    Bench(bench::Options),
    /// Write `benches/RESULTS.md` from `benches/results`, after adding the lines of a run.
    Results(results::Options),
}

fn main() -> ExitCode {
    let result = workspace::Workspace::find().and_then(|workspace| match Arguments::parse().task {
        Task::Dist(options) => dist::run(&workspace, &options),
        Task::Demo(options) => demo::run(&workspace, &options),
        Task::Test(options) => test::run(&workspace, &options),
        Task::Header => header::run(&workspace),
        Task::Loom => loom::run(&workspace),
        Task::Miri => miri::run(&workspace),
        Task::Parts => parts::run(&workspace),
        Task::Tidy(options) => tidy::run(&workspace, &options),
        Task::Doc => doc::run(&workspace),
        Task::Book => book::run(&workspace),
        Task::Mutants(options) => mutants::run(&workspace, &options),
        Task::Cuda(task) => cuda::run(&workspace, &task),
        Task::Gpu => gpu::run(&workspace),
        Task::Wheel => python::wheel(&workspace),
        Task::ArrayApi(options) => python::array_api(&workspace, &options),
        Task::Bench(options) => bench::run(&workspace, &options),
        Task::Results(options) => results::run(&workspace, &options),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
