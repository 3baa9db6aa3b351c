//! `cargo xtask tidy`: the rules that the compiler does not check.
//!
//! A rule is a function from texts to violations, so that its tests can pass it small texts, good and bad. The exceptions
//! of a rule are a constant next to it.

mod absences;
mod commits;
mod cycles;
mod files;
mod levels;
mod links;
mod locks;
mod manifests;
mod measured;
mod source;
mod tokens;
mod unsafety;
mod words;

use crate::failure::{Failure, Result};
use crate::workspace::Workspace;
use std::fmt;
use std::path::PathBuf;

/// The options of `cargo xtask tidy`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Check the subjects of commits instead: those of a range, else those that origin/main lacks, else the last one.
    #[arg(long, value_name = "RANGE", num_args = 0..=1, conflicts_with = "message")]
    commits: Option<Option<String>>,
    /// Check the subject in this file instead, as the hook in `.githooks` does.
    #[arg(long, value_name = "FILE")]
    message: Option<PathBuf>,
    /// List the files that import one another instead, of the crates whose folder contains this text.
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, conflicts_with_all = ["message", "commits"])]
    cycles: Option<Option<String>>,
}

/// A broken rule, with its source location.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Violation {
    /// The file, relative to the repository.
    pub path: String,
    /// The line, from 1; 1 for a violation of the whole file.
    pub line: usize,
    /// The violation.
    pub what: String,
    /// The fix.
    pub mend: &'static str,
}

impl Violation {
    fn new(path: &str, line: usize, what: impl Into<String>, mend: &'static str) -> Self {
        Self { path: path.to_owned(), line, what: what.into(), mend }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.path, self.line, self.what, self.mend)
    }
}

/// Checks what the options ask for.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    if let Some(part) = &options.cycles {
        cycles::print(&source::collect(&workspace.root)?, part.as_deref().unwrap_or_default());
        return Ok(());
    }
    match (&options.commits, &options.message) {
        (Some(range), _) => commits::run(workspace, range.as_deref()),
        (None, Some(message)) => commits::run_message(workspace, message),
        (None, None) => run_rules(workspace),
    }
}

/// The number of long files that are named.
const LONGEST: usize = 5;

/// Checks every rule on files and prints every violation.
fn run_rules(workspace: &Workspace) -> Result<()> {
    let files = source::collect(&workspace.root)?;
    let mut found = files::check(&files);
    found.extend(unsafety::check(&files));
    found.extend(absences::check(&files));
    found.extend(levels::check(&files));
    found.extend(cycles::check(&files));
    found.extend(locks::check(&files));
    found.extend(links::check(&files));
    found.extend(words::check(&files));
    found.extend(measured::check(&files));
    found.extend(manifests::check(workspace, &files)?);
    found.sort();

    let long = files::long(&files);
    if !long.is_empty() {
        let longest = long[..long.len().min(LONGEST)].join(", ");
        println!("{} files are above the {} lines to aim at, the longest {longest}", long.len(), files::AIM);
    }
    for violation in &found {
        println!("{violation}");
    }
    if found.is_empty() {
        println!("tidy: {} files, no violations", files.len());
        Ok(())
    } else {
        Err(Failure::Untidy { count: found.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_reads_as_place_fault_and_remedy() {
        let violation = Violation::new("a/b.rs", 3, "`x` is wrong", "write `y`");
        assert_eq!(violation.to_string(), "a/b.rs:3: `x` is wrong; write `y`");
    }
}
