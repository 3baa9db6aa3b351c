//! The files that a training writes. Each replaces an old one as a whole; one that fails keeps none of the others back.

use super::digits::Trained;
use super::plot;
use super::summary::Results;
use crate::failure::Failure;
use crate::screen::Screen;
use keyway::io::{replace, safetensors};
use keyway::nn::Module;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const SAVE: &str = "the weights";
const PLOT: &str = "the loss curve";
const JSON: &str = "the results";

/// Where to write what.
pub struct Outputs {
    /// The weights.
    pub save: Option<PathBuf>,
    /// The loss curve.
    pub plot: Option<PathBuf>,
    /// The results.
    pub json: Option<PathBuf>,
}

/// What was written where.
pub struct Written {
    what: &'static str,
    path: PathBuf,
}

impl Outputs {
    fn all(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let all = [(SAVE, &self.save), (PLOT, &self.plot), (JSON, &self.json)];
        all.into_iter().filter_map(|(what, path)| Some((what, path.as_deref()?)))
    }

    /// Finds out before the training whether the files can be written.
    ///
    /// # Errors
    /// Wrong usage for two outputs in one file; every path that cannot be written.
    pub fn check(&self) -> Result<(), Failure> {
        let paths: Vec<_> = self.all().collect();
        for (i, (what, path)) in paths.iter().enumerate() {
            if let Some((other, _)) = paths[..i].iter().find(|(_, earlier)| earlier == path) {
                return Err(Failure::Usage(format!(
                    "{other} and {what} cannot both go to {}",
                    path.display()
                )));
            }
        }
        let refused = |(what, path): (&'static str, &Path)| {
            try_folder(path).err().map(|reason| Failure::write(what, path, reason))
        };
        Failure::all(paths.into_iter().filter_map(refused).collect())
    }

    /// Writes all of them, also after one has failed.
    pub fn write(&self, trained: &Trained, results: &Results) -> Vec<Result<Written, Failure>> {
        let one = |(what, path): (&'static str, &Path)| match write_one(what, path, trained, results) {
            Ok(()) => Ok(Written { what, path: path.to_path_buf() }),
            Err(reason) => Err(Failure::write(what, path, reason)),
        };
        self.all().map(one).collect()
    }

    /// Says what was written.
    pub fn tell(&self, written: &[Result<Written, Failure>], screen: &mut Screen) {
        for Written { what, path } in written.iter().flatten() {
            screen.line(format!("wrote {what} to {}", path.display()));
        }
    }
}

fn write_one(what: &str, path: &Path, trained: &Trained, results: &Results) -> Result<(), String> {
    let text = match what {
        SAVE => {
            return safetensors::save(path, &trained.model.state_dict()).map_err(|error| error.to_string());
        }
        PLOT => plot::loss_curve(&trained.losses, &results.title())?,
        _ => serde_json::to_string_pretty(results).map_err(|error| error.to_string())? + "\n",
    };
    replace(path, |file| file.write_all(text.as_bytes())).map_err(|error| error.to_string())
}

/// Whether a file can be made beside `path`, by making one. A device or a pipe is not replaced and needs none.
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
