//! `keyway conformance`: judges a backend.

use crate::failure::Failure;
use crate::screen::Screen;
use std::path::PathBuf;

/// What to judge, and how.
#[derive(clap::Args)]
pub struct Options {
    /// Write the samples and the oracle's results into this folder, for a comparison with other libraries.
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
}

/// Judges.
///
/// # Errors
/// Wrong usage, a backend that cannot be loaded, a case that is not as expected.
pub fn run(options: &Options, screen: &mut Screen) -> Result<(), Failure> {
    if let Some(folder) = &options.export {
        let (ops, lines) = keyway_conformance::export::export(folder)
            .map_err(|e| Failure::write("the samples", folder, e))?;
        screen.line(format!("{ops} ops, {lines} samples in {}", folder.display()));
    }
    Ok(())
}
