//! The output files of a command. Each is replaced atomically; an error on one does not prevent the others.

use crate::failure::Failure;
use crate::screen::Screen;
use keyway::io::replace;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A path for each output.
pub struct Outputs(Vec<(&'static str, PathBuf)>);

/// The outputs that were written, with their paths.
pub struct Written {
    what: &'static str,
    path: PathBuf,
}

impl Outputs {
    /// The requested outputs.
    pub fn new<'a>(asked: impl IntoIterator<Item = (&'static str, &'a Option<PathBuf>)>) -> Outputs {
        Outputs(asked.into_iter().filter_map(|(what, path)| Some((what, path.clone()?))).collect())
    }

    /// Checks in advance that each file can be written.
    ///
    /// # Errors
    /// Wrong usage for two outputs in one file; every path that cannot be written.
    pub fn check(&self) -> Result<(), Failure> {
        for (i, (what, path)) in self.0.iter().enumerate() {
            if let Some((other, _)) = self.0[..i].iter().find(|(_, earlier)| earlier == path) {
                return Err(Failure::Usage(format!(
                    "{other} and {what} cannot both go to {}",
                    path.display()
                )));
            }
        }
        let refused = |(what, path): &(&'static str, PathBuf)| {
            try_folder(path).err().map(|reason| Failure::write(what, path, reason))
        };
        Failure::all(self.0.iter().filter_map(refused).collect())
    }

    /// Writes each output with `one`, even after an error.
    pub fn write(&self, one: impl Fn(&str, &Path) -> Result<(), String>) -> Vec<Result<Written, Failure>> {
        let write = |(what, path): &(&'static str, PathBuf)| match one(what, path) {
            Ok(()) => Ok(Written { what, path: path.clone() }),
            Err(reason) => Err(Failure::write(what, path, reason)),
        };
        self.0.iter().map(write).collect()
    }
}

/// Prints the outputs that were written; combines all errors into one.
///
/// # Errors
/// Outputs that could not be written.
pub fn report_written(written: Vec<Result<Written, Failure>>, screen: &mut Screen) -> Result<(), Failure> {
    for Written { what, path } in written.iter().flatten() {
        screen.line(format!("wrote {what} to {}", path.display()));
    }
    Failure::all(written.into_iter().filter_map(Result::err).collect())
}

/// Replaces a file by text.
///
/// # Errors
/// Errors of the system.
pub fn text(path: &Path, text: &str) -> Result<(), String> {
    replace(path, |file| file.write_all(text.as_bytes())).map_err(|error| error.to_string())
}

/// Checks that a file can be created next to `path`, by creating one. A device or a pipe is not replaced and needs none.
fn try_folder(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        return Err(std::io::Error::new(ErrorKind::IsADirectory, "it is a folder"));
    }
    if path.metadata().is_ok_and(|meta| !meta.is_file()) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let attempt = folder.join(format!(".keyway-{}.tmp", std::process::id()));
    OpenOptions::new().write(true).create_new(true).open(&attempt)?;
    std::fs::remove_file(&attempt)
}
