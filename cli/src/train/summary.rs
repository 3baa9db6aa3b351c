//! The results of a training, as data and as text.

use super::task::{Task, Trained};
use crate::machine::{self, Backend, PeakMemory};
use crate::profile;
use crate::screen::{self, Screen};
use keyway::dispatcher::{ledger, parallel};
use keyway::nn::Module;
use keyway::profiler::Report;
use keyway::{Device, MemoryFormat, Result};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// The results of a training.
#[derive(Serialize)]
pub struct Results {
    dataset: &'static str,
    model: &'static str,
    layers: Vec<usize>,
    #[serde(skip)]
    described: String,
    parameters: usize,
    epochs: u32,
    batch: u32,
    lr: f64,
    seed: u64,
    memory_format: &'static str,
    device: String,
    threads: usize,
    train_rows: usize,
    test_rows: usize,
    /// Correctly classified test rows.
    test_right: usize,
    test_accuracy: f64,
    /// Mean over the rows of each epoch.
    train_loss: Vec<f64>,
    /// SHA-256 over the bytes of the named parameters in order, little-endian f32.
    weights_sha256: String,
    /// Seconds of training, in all runs.
    seconds: f64,
    #[serde(flatten)]
    memory: PeakMemory,
    backends: Vec<Backend>,
    fallbacks: Vec<ledger::Fallback>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<Report>,
}

impl Results {
    /// Gathers all figures.
    ///
    /// # Errors
    /// Errors of the device when weights are read.
    pub fn new(task: &Task, trained: &Trained, profile: Option<Report>) -> Result<Results> {
        let (design, settings) = (task.design(), task.settings);
        let (train_rows, test_rows) = (task.data.train.len(), task.data.test.len());
        Ok(Results {
            dataset: task.data.source.name(),
            model: settings.network.name(),
            layers: design.sizes(),
            described: design.describe(),
            parameters: trained.model.num_parameters(),
            epochs: settings.epochs,
            batch: settings.batch,
            lr: settings.lr,
            seed: settings.seed,
            memory_format: MemoryFormat::from(settings.format).name(),
            device: task.device.to_string(),
            threads: parallel::num_threads(),
            train_rows,
            test_rows,
            test_right: trained.right,
            test_accuracy: trained.right as f64 / test_rows.max(1) as f64,
            train_loss: trained.done.losses.clone(),
            weights_sha256: weights_sha256(&trained.model)?,
            seconds: trained.done.seconds,
            memory: PeakMemory::of(task.device),
            backends: machine::backends(),
            fallbacks: ledger::fallbacks(),
            profile,
        })
    }

    /// A line that identifies the run.
    pub fn title(&self) -> String {
        let Results { model, dataset, epochs, batch, lr, seed, .. } = self;
        let plural = if *epochs == 1 { "" } else { "s" };
        format!("{model} on {dataset}: {epochs} epoch{plural}, batch {batch}, lr {lr}, seed {seed}")
    }
}

/// The hash of the weights, equal for two runs with equal weights.
fn weights_sha256(model: &impl Module) -> Result<String> {
    let mut hash = Sha256::new();
    for (_, parameter) in model.named_parameters() {
        for value in parameter.detach().to_device(Device::CPU)?.to_vec::<f32>()? {
            hash.update(value.to_le_bytes());
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Prints the results, the calls that ran on another device, and the profile if one was taken.
pub fn print(results: &Results, screen: &mut Screen) {
    screen.line(results.title());
    screen.line(format!(
        "{}, {} parameters, on {} with {} thread{}",
        results.described,
        results.parameters,
        results.device,
        results.threads,
        if results.threads == 1 { "" } else { "s" }
    ));
    screen.line(format!(
        "test accuracy {:.4} ({} of {} rows), last training loss {:.4}",
        results.test_accuracy,
        results.test_right,
        results.test_rows,
        results.train_loss.last().copied().unwrap_or_default()
    ));
    screen.line(format!(
        "{:.2} s, peak memory {}, tensors {}",
        results.seconds,
        screen::bytes(results.memory.peak_bytes),
        screen::bytes(results.memory.tensor_peak_bytes)
    ));
    if let Some(report) = &results.profile {
        screen.line("");
        profile::print(report, profile::TOP, screen);
    }
    for ledger::Fallback { op, from, to, calls, moves } in &results.fallbacks {
        screen.line(format!(
            "fallback: {op} ran {calls} times on {to} instead of {from}, {moves} tensors moved"
        ));
    }
}
