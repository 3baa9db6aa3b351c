//! What came of a training, as data and for people.

use super::digits::{Task, Trained};
use crate::screen::{self, Screen};
use keyway::dispatcher::{ledger, parallel, registry};
use keyway::nn::Module;
use keyway::profiler::{Report, device_memory};
use keyway::{Device, Result};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// Rows of the profile that are shown.
const TOP: usize = 15;

#[derive(Serialize)]
struct Backend {
    name: &'static str,
    version: String,
    variant: String,
    #[serde(serialize_with = "keyway::dispatcher::lossy::path")]
    path: PathBuf,
}

/// What came of a training.
#[derive(Serialize)]
pub struct Results {
    dataset: &'static str,
    model: &'static str,
    layers: Vec<usize>,
    #[serde(skip)]
    described: String,
    parameters: usize,
    epochs: usize,
    batch: usize,
    lr: f64,
    seed: u64,
    memory_format: &'static str,
    device: String,
    threads: usize,
    train_rows: usize,
    test_rows: usize,
    /// Test rows that the network got right.
    test_right: usize,
    test_accuracy: f64,
    /// Mean over the rows of each epoch.
    train_loss: Vec<f64>,
    /// SHA-256 over the bytes of the named parameters in order, little-endian f32.
    weights_sha256: String,
    /// Seconds of training.
    seconds: f64,
    /// Most memory that the process held at a time; where the system does not say, what tensors held.
    peak_bytes: u64,
    /// Most memory that tensors held on the device at a time.
    tensor_peak_bytes: u64,
    backends: Vec<Backend>,
    fallbacks: Vec<ledger::Fallback>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<Report>,
}

impl Results {
    /// Gathers all figures.
    ///
    /// # Errors
    /// What the device reports when weights are read.
    pub fn new(task: &Task, trained: &Trained, profile: Option<Report>) -> Result<Results> {
        let device = task.device.to_string();
        let tensor_peak_bytes = device_memory()
            .iter()
            .find(|memory| memory.device == device)
            .map_or(0, |memory| memory.peak_in_use);
        let backend = |p: &keyway::dispatcher::plugin::PluginEntry| Backend {
            name: p.name,
            version: p.version.clone(),
            variant: p.variant.clone(),
            path: p.path.clone(),
        };
        Ok(Results {
            dataset: "digits",
            model: task.network.name(),
            layers: task.network.sizes(),
            described: task.network.describe(),
            parameters: trained.model.num_parameters(),
            epochs: task.epochs,
            batch: task.batch,
            lr: task.lr,
            seed: task.seed,
            memory_format: task.format.name(),
            device,
            threads: parallel::num_threads(),
            train_rows: trained.train_rows,
            test_rows: trained.test_rows,
            test_right: trained.right,
            test_accuracy: trained.right as f64 / trained.test_rows.max(1) as f64,
            train_loss: trained.losses.clone(),
            weights_sha256: weights_sha256(&trained.model)?,
            seconds: trained.seconds,
            peak_bytes: process_peak().unwrap_or(tensor_peak_bytes),
            tensor_peak_bytes,
            backends: registry::plugins().into_iter().map(backend).collect(),
            fallbacks: ledger::fallbacks(),
            profile,
        })
    }

    /// One line that names the run.
    pub fn title(&self) -> String {
        let Results { model, dataset, epochs, batch, lr, seed, .. } = self;
        let plural = if *epochs == 1 { "" } else { "s" };
        format!("{model} on {dataset}: {epochs} epoch{plural}, batch {batch}, lr {lr}, seed {seed}")
    }
}

/// The hash that two runs have in common if they came to the same weights.
fn weights_sha256(model: &impl Module) -> Result<String> {
    let mut hash = Sha256::new();
    for (_, parameter) in model.named_parameters() {
        for value in parameter.detach().to_device(Device::CPU)?.to_vec::<f32>()? {
            hash.update(value.to_le_bytes());
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The most memory that this process held at a time, as Linux counts it.
fn process_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Shows the results, the calls that ran on another device, and the profile if one was taken.
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
        "{:.2} s, peak memory {}, of which tensors {}",
        results.seconds,
        screen::bytes(results.peak_bytes),
        screen::bytes(results.tensor_peak_bytes)
    ));
    if let Some(report) = &results.profile {
        profile(report, screen);
    }
    for ledger::Fallback { op, from, to, calls } in &results.fallbacks {
        screen.line(format!("fallback: {op} ran {calls} times on {to} instead of {from}"));
    }
}

/// The ops that took most time, and all together.
fn profile(report: &Report, screen: &mut Screen) {
    let ms = |nanoseconds: u64| format!("{:.1}", nanoseconds as f64 / 1e6);
    let whole = report.op_ns().max(1) as f64;
    let share = |nanoseconds: u64| format!("{:.1}", 100.0 * nanoseconds as f64 / whole);
    let mut table = screen::table(&["OP", "SERVED BY", "CALLS", "SELF ms", "SHARE %"], &[2, 3, 4]);
    for row in report.rows.iter().take(TOP) {
        table.add_row([
            row.op.clone(),
            row.served_by.clone(),
            row.calls.to_string(),
            ms(row.self_ns),
            share(row.self_ns),
        ]);
    }
    let rest = &report.rows[report.rows.len().min(TOP)..];
    if !rest.is_empty() {
        let (calls, time) =
            rest.iter().fold((0, 0), |(calls, time), row| (calls + row.calls, time + row.self_ns));
        table.add_row([
            format!("{} others", rest.len()),
            String::new(),
            calls.to_string(),
            ms(time),
            share(time),
        ]);
    }
    let (calls, time) = (report.calls().to_string(), ms(report.op_ns()));
    table.add_row(["total".to_string(), String::new(), calls, time, share(report.op_ns())]);
    screen.line("");
    screen.table(&table);
    screen.line("");
}
