//! Checkpoints: the complete state of a training, in one safetensors file.
//!
//! Tensors are named after their owner: `model.0.weight`, `optimizer.state.0.momentum`, `generators.4.generator`; `losses` has
//! the mean loss of each epoch so far. The metadata has the options that decide the result, and a SHA-256 of everything else,
//! so that a file damaged on a disk or in transit is detected.

use super::settings::Notes;
use super::task::Done;
use crate::failure::Failure;
use keyway::io::safetensors;
use keyway::nn::{Module, StateDict};
use keyway::optim::Optimizer;
use keyway::{Device, Result, Tensor};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The metadata key that identifies a checkpoint, and the version of its content.
const KEY: &str = "keyway.checkpoint";
const VERSION: &str = "1";
/// The metadata key of the data set's hash.
const DATA: &str = "data_sha256";
/// The metadata key of the SHA-256 of the tensors and of all other metadata. Checkpoints of older programs have none.
const SUM: &str = "keyway.checkpoint_sha256";
/// The metadata key of the training time.
const SECONDS: &str = "seconds";
/// The metadata key of the number of finished epochs, for human readers; the length of `losses` contains it too.
const EPOCH: &str = "epoch";

const MODEL: &str = "model.";
const OPTIMIZER: &str = "optimizer.";
const GENERATORS: &str = "generators.";
const LOSSES: &str = "losses";

/// Path of the checkpoints, and the metadata that all of them share.
pub struct Target {
    /// The file.
    pub path: PathBuf,
    /// The options.
    pub notes: Notes,
}

impl Target {
    /// Replaces the file with the state after an epoch, atomically: a killed process leaves the old or the new file.
    ///
    /// # Errors
    /// Errors of the system or the device.
    pub fn save(
        &self,
        model: &impl Module,
        optimizer: &impl Optimizer,
        data: &str,
        done: &Done,
    ) -> Result<()> {
        let mut tensors = StateDict::new();
        for (prefix, part) in [
            (MODEL, model.state_dict()),
            (OPTIMIZER, optimizer.state_dict()?),
            (GENERATORS, model.generator_state_dict()?),
        ] {
            tensors.extend(part.into_iter().map(|(name, tensor)| (format!("{prefix}{name}"), tensor)));
        }
        tensors.insert(LOSSES.to_string(), Tensor::new(&done.losses)?);
        let mut notes = self.notes.clone();
        for (key, text) in [
            (KEY, VERSION.to_string()),
            (DATA, data.to_string()),
            (EPOCH, done.losses.len().to_string()),
            (SECONDS, format!("{:?}", done.seconds)),
        ] {
            notes.insert(key.to_string(), text);
        }
        notes.insert(SUM.to_string(), sum(&tensors, &notes)?);
        safetensors::save_with_metadata(&self.path, &tensors, &notes)
    }
}

/// A checkpoint that was read.
pub struct Checkpoint {
    /// The file.
    pub path: PathBuf,
    /// The options.
    pub notes: Notes,
    /// The progress until then.
    pub done: Done,
    tensors: StateDict,
}

impl Checkpoint {
    /// Reads a file.
    ///
    /// # Errors
    /// A file that cannot be read, that is damaged or that is no checkpoint.
    pub fn load(path: &Path) -> Result<Checkpoint, Failure> {
        let safetensors::File { tensors, metadata: notes } = safetensors::load_file(path)?;
        let unfit = |reason: String| unfit(path, reason);
        match notes.get(KEY).map(String::as_str) {
            Some(VERSION) => {}
            Some(other) => {
                let reason = format!(
                    "expected version {VERSION} of checkpoints, got {other:?}; use the program that wrote it"
                );
                return Err(unfit(reason));
            }
            None => {
                let reason =
                    "it was not written by `keyway train --checkpoint`; a file of weights only cannot be resumed"
                        .to_string();
                return Err(unfit(reason));
            }
        }
        if let Some(noted) = notes.get(SUM) {
            let got = sum(&tensors, &notes)?;
            if *noted != got {
                let reason = format!(
                    "it is damaged: expected content of SHA-256 {noted}, as it was written, got {got}; take a copy that is \
                     whole, or leave `--resume` out to begin anew"
                );
                return Err(unfit(reason));
            }
        }
        let losses = tensors.get(LOSSES).map(Tensor::to_vec::<f64>).transpose();
        let losses = losses.map_err(|error| unfit(error.to_string()))?.unwrap_or_default();
        let number = |key: &str| notes.get(key).and_then(|text| text.parse::<f64>().ok());
        let [Some(epoch), Some(epochs), Some(seconds)] = [EPOCH, "epochs", SECONDS].map(number) else {
            return Err(unfit("it does not state its progress".to_string()));
        };
        if losses.len() as f64 != epoch || epoch > epochs {
            return Err(unfit(format!("it has {} losses after epoch {epoch} of {epochs}", losses.len())));
        }
        Ok(Checkpoint { path: path.to_path_buf(), notes, done: Done { losses, seconds }, tensors })
    }

    /// Restores the state of a training on the same data.
    ///
    /// # Errors
    /// Data other than the checkpoint's; a state that does not fit, after which the model must not be used.
    pub fn restore(
        &self,
        model: &impl Module,
        optimizer: &mut impl Optimizer,
        data: &str,
    ) -> Result<(), Failure> {
        let known = self.notes.get(DATA).map_or("", String::as_str);
        if known != data {
            return Err(unfit(
                &self.path,
                format!("it was trained on other data, of SHA-256 {known}, and the data set here has {data}"),
            ));
        }
        let part = |prefix: &str| -> StateDict {
            let own = |(name, tensor): (&String, &Tensor)| {
                Some((name.strip_prefix(prefix)?.to_string(), tensor.clone()))
            };
            self.tensors.iter().filter_map(own).collect()
        };
        let mut all = || -> Result<()> {
            model.load_state_dict(&part(MODEL))?;
            optimizer.load_state_dict(&part(OPTIMIZER))?;
            model.load_generator_state_dict(&part(GENERATORS))
        };
        all().map_err(|error| unfit(&self.path, error.to_string()))
    }
}

/// The SHA-256 of a checkpoint's content: names, dtypes, shapes and elements of its tensors, and all metadata except the
/// SHA-256 itself.
fn sum(tensors: &StateDict, notes: &Notes) -> Result<String> {
    let mut hash = Sha256::new();
    for (name, tensor) in tensors {
        let bytes = tensor.detach().to_device(Device::CPU)?.to_bytes()?;
        hash.update(format!("{name:?} {} {:?} {}\n", tensor.dtype(), tensor.dims(), bytes.len()));
        hash.update(bytes);
    }
    for (key, text) in notes.iter().filter(|(key, _)| *key != SUM) {
        hash.update(format!("{key:?} {text:?}\n"));
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn unfit(path: &Path, reason: String) -> Failure {
    Failure::Read { what: "the checkpoint", path: path.to_path_buf(), reason }
}
