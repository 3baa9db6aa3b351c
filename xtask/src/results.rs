//! `cargo xtask results`: writes `benches/RESULTS.md` from the files in `benches/results`.
//!
//! With `--add` the lines that `cargo xtask bench` prints become a file first. `cargo xtask tidy` compares the page with the
//! files.

mod add;
mod data;
mod page;

use crate::failure::{Failure, Result};
use crate::workspace::{self, Workspace};
use data::Results;
use std::path::PathBuf;

/// The folder of the files.
pub const FOLDER: &str = "benches/results/";
/// The generated page.
pub const PAGE: &str = "benches/RESULTS.md";

/// The options of `cargo xtask results`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// A file of JSON lines, as `cargo xtask bench` prints them.
    #[arg(long, value_name = "LINES", requires_all = ["to", "machine", "date"])]
    add: Option<PathBuf>,
    /// The file of results, without folder and ending: topic and machine, such as `products-zen5`.
    #[arg(long, value_name = "NAME", requires = "add")]
    to: Option<String>,
    /// The processor or GPU, with what matters of it.
    #[arg(long, requires = "add")]
    machine: Option<String>,
    /// The day of the run, YYYY-MM-DD.
    #[arg(long, requires = "add")]
    date: Option<String>,
    /// A compared program and its version, such as `torch=2.15`; once for each.
    #[arg(long, value_name = "NAME=VERSION", requires = "add")]
    peer: Vec<String>,
}

/// A file of results with a fault.
#[derive(Debug, PartialEq)]
pub struct Fault {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The fault.
    pub what: String,
}

/// Adds the lines, if there are any, and writes the page.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    if options.add.is_some() {
        add(workspace, options)?;
    }
    let folder = workspace.path(FOLDER);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(Failure::file("list", &folder))? {
        let path = entry.map_err(Failure::file("list", &folder))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = std::fs::read_to_string(&path).map_err(Failure::file("read", &path))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.push((format!("{FOLDER}{name}"), text));
        }
    }
    let pairs: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let text = page(&pairs)
        .map_err(|fault| Failure::Results { path: workspace.path(&fault.path), fault: fault.what })?;
    let target = workspace.path(PAGE);
    std::fs::write(&target, &text).map_err(Failure::file("write", &target))?;
    println!("results: {PAGE}: {} lines from {} files", text.lines().count(), files.len());
    Ok(())
}

/// The page for these files, each with its path and text.
///
/// # Errors
/// The first file with a fault.
pub fn page(files: &[(&str, &str)]) -> std::result::Result<String, Fault> {
    let parsed = files.iter().map(|(path, text)| match Results::parse(text) {
        Ok(results) => Ok((*path, results)),
        Err((line, what)) => Err(Fault { path: (*path).to_owned(), line, what }),
    });
    Ok(page::page(&parsed.collect::<std::result::Result<Vec<_>, _>>()?))
}

fn add(workspace: &Workspace, options: &Options) -> Result<()> {
    let text = |option: &Option<String>| option.clone().unwrap_or_default();
    let (name, machine, date) = (text(&options.to), text(&options.machine), text(&options.date));
    let lines = options.add.clone().unwrap_or_default();
    let read = std::fs::read_to_string(&lines).map_err(Failure::file("read", &lines))?;
    let path = workspace.path(&format!("{FOLDER}{name}.json"));
    let fault = |fault: String| Failure::Results { path: path.clone(), fault };
    let old = match path.exists() {
        true => {
            let text = std::fs::read_to_string(&path).map_err(Failure::file("read", &path))?;
            Some(Results::parse(&text).map_err(|(line, what)| fault(format!("line {line}: {what}")))?)
        }
        false => None,
    };
    // Without git the commit is unknown, as for the runs of earlier days.
    let mut git = workspace.command("git");
    git.args(["rev-parse", "--short=10", "HEAD"]);
    let commit = workspace::capture(&mut git, "none").ok().map(|text| text.trim().to_owned());
    let peers = options.peer.iter().map(|peer| {
        let (name, version) = peer.split_once('=').unwrap_or((peer, "of an unknown version"));
        (name.to_owned(), version.to_owned())
    });
    let run = add::Run { name: &name, machine: &machine, date: &date, commit, peers: peers.collect() };
    let results = add::merged(old, &run, &read).map_err(fault)?;
    std::fs::write(&path, results.text()).map_err(Failure::file("write", &path))
}
