//! The repository's files.

use super::tokens::Tokens;
use crate::failure::{Failure, Result};
use std::cell::OnceCell;
use std::path::Path;

/// Folders without files of the repository.
const SKIPPED: &[&str] = &["target", "dist", "out", "node_modules", "__pycache__"];
/// In a linked worktree `.git` is a file.
const GIT: &str = ".git";
/// Folders with a leading dot that contain such files.
const DOTTED: &[&str] = &[".ci", ".cargo", ".config", ".githooks", ".github"];

/// A text file of the repository.
#[derive(Clone, Debug)]
pub struct File {
    /// Relative to the repository, with `/` between the parts.
    pub path: String,
    /// The content.
    pub text: String,
    /// The tokens, or the line of the first syntax error; computed on first use.
    tokens: OnceCell<std::result::Result<Tokens, usize>>,
}

impl File {
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: text.into(), tokens: OnceCell::new() }
    }

    /// The tokens of a Rust source. A text that is not Rust has none; [`File::not_rust`] has the line of its error, and a
    /// separate rule reports it.
    pub fn tokens(&self) -> Option<&Tokens> {
        self.taken_apart()?.as_ref().ok()
    }

    /// The line of the first syntax error of a Rust source.
    pub fn not_rust(&self) -> Option<usize> {
        self.taken_apart()?.as_ref().err().copied()
    }

    fn taken_apart(&self) -> Option<&std::result::Result<Tokens, usize>> {
        self.is_rust().then(|| self.tokens.get_or_init(|| Tokens::of(&self.text)))
    }

    /// Whether the file is a Rust source.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the complete file is test code, by its name or a folder's.
    pub fn is_test(&self) -> bool {
        self.names().any(|name| name == "tests" || name.ends_with("_tests"))
    }

    /// The folders' names and the file's name without its ending.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.path.split('/').map(|name| name.split_once('.').map_or(name, |(stem, _)| stem))
    }

    /// The crate's folder: the first part of the path.
    pub fn top(&self) -> &str {
        self.path.split('/').next().unwrap_or_default()
    }
}

/// Reads every text file below the root, sorted by path.
pub fn collect(root: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    walk(root, "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn walk(folder: &Path, prefix: &str, files: &mut Vec<File>) -> Result<()> {
    for entry in std::fs::read_dir(folder).map_err(Failure::file("list", folder))? {
        let entry = entry.map_err(Failure::file("list", folder))?;
        let kind = entry.file_type().map_err(Failure::file("look at", &entry.path()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        let hidden = name.starts_with('.') && !DOTTED.contains(&name.as_str());
        if kind.is_dir() {
            if !hidden && !SKIPPED.contains(&name.as_str()) {
                walk(&entry.path(), &path, files)?;
            }
        } else if kind.is_file() && name != GIT {
            let bytes = std::fs::read(entry.path()).map_err(Failure::file("read", &entry.path()))?;
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(File::new(&path, &text));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_builds_are_skipped() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        for path in ["a/b.rs", "a/.git", "target/c.rs", ".git/d", ".ci/run", "e.bin"] {
            let path = scratch.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            let text: &[u8] = if path.ends_with("e.bin") { &[0xff, 0xfe] } else { b"x" };
            std::fs::write(path, text).expect("a file");
        }
        let found = collect(scratch.path()).expect("files");
        assert_eq!(found.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), [".ci/run", "a/b.rs"]);
    }
}
