//! The files that a training writes.

use super::plot;
use super::summary::Results;
use super::task::Trained;
use crate::files;
use keyway::io::safetensors;
use keyway::nn::Module;
use std::path::Path;

/// The weights, as safetensors.
pub const SAVE: &str = "the weights";
/// The loss curve, as SVG.
pub const PLOT: &str = "the loss curve";
/// The checkpoints, as safetensors.
pub const CHECKPOINT: &str = "the checkpoint";
/// The trace of all calls, as JSON.
pub const TRACE: &str = "the trace";
/// The memory by owner, as a page or as JSON.
pub const MEMORY: &str = "the memory profile";
/// The results, as JSON.
pub const JSON: &str = "the results";

/// Writes one of the outputs.
///
/// # Errors
/// Errors of the system.
pub fn write(what: &str, path: &Path, trained: &Trained, results: &Results) -> Result<(), String> {
    let text = match what {
        SAVE => {
            return safetensors::save(path, &trained.model.state_dict()).map_err(|error| error.to_string());
        }
        PLOT => plot::loss_curve(&trained.done.losses, &results.title())?,
        _ => serde_json::to_string_pretty(results).map_err(|error| error.to_string())? + "\n",
    };
    files::text(path, &text)
}
