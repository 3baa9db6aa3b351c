//! The measurements, as data and as text.

use super::Options;
use super::load::{Load, Measured};
use crate::machine::{self, Backend};
use crate::screen::{self, Screen};
use keyway::dispatcher::ledger::Fallback;
use keyway::dispatcher::parallel;
use keyway::profiler::Report;
use keyway::{DType, MemoryFormat};
use serde::Serialize;

/// The calls that one library served in a round.
#[derive(Serialize)]
struct Served {
    /// The library's name, or the kind of candidate without one.
    by: String,
    calls: u64,
    milliseconds: f64,
}

/// The measurements.
#[derive(Serialize)]
pub struct Results {
    model: &'static str,
    /// Whether a round is a training step or a pass.
    train: bool,
    /// Whether norms are folded and activations are fused into the convolutions.
    fused: bool,
    batch: u32,
    /// Pixels of each side of an image.
    size: u32,
    dtype: String,
    memory_format: &'static str,
    device: String,
    threads: usize,
    parameters: usize,
    /// Source of the weights, if not a generator.
    weights: Option<String>,
    /// Bytes of parameters and buffers.
    weight_bytes: u64,
    /// Peak bytes that tensors and kernels held beyond those held before a round; null if the device has no statistics.
    round_bytes: Option<u64>,
    /// Peak resident memory of the process; null if the system does not report it.
    peak_bytes: Option<u64>,
    /// Seconds of each round.
    seconds: Vec<f64>,
    median_seconds: f64,
    lowest_seconds: f64,
    highest_seconds: f64,
    images_per_second: f64,
    /// The loss of the last step.
    #[serde(skip_serializing_if = "Option::is_none")]
    loss: Option<f32>,
    /// The libraries that served the calls of the additional round, in descending order of time.
    served: Vec<Served>,
    backends: Vec<Backend>,
    fallbacks: Vec<Fallback>,
}

impl Results {
    /// Gathers all figures.
    pub fn new(options: &Options, load: &Load, measured: &Measured) -> Results {
        let Measured { seconds, loss, round_bytes, trace } = measured;
        let mut sorted = seconds.clone();
        sorted.sort_by(f64::total_cmp);
        let median = median(&sorted);
        Results {
            model: options.model.name(),
            train: options.train,
            fused: options.fused,
            batch: options.batch,
            size: options.size,
            dtype: DType::from(options.dtype).to_string(),
            memory_format: MemoryFormat::from(options.memory_format).name(),
            device: load.device.to_string(),
            threads: parallel::num_threads(),
            parameters: load.parameters,
            weights: options.weights.as_ref().map(|path| path.display().to_string()),
            weight_bytes: load.weight_bytes,
            round_bytes: *round_bytes,
            peak_bytes: machine::process_peak(),
            median_seconds: median,
            lowest_seconds: sorted.first().copied().unwrap_or_default(),
            highest_seconds: sorted.last().copied().unwrap_or_default(),
            images_per_second: f64::from(options.batch) / median,
            seconds: seconds.clone(),
            loss: *loss,
            served: served(&trace.report),
            backends: machine::backends(),
            fallbacks: trace.report.fallbacks.clone(),
        }
    }
}

/// The median of sorted values.
fn median(sorted: &[f64]) -> f64 {
    let middle = |index: usize| sorted.get(index).copied().unwrap_or_default();
    f64::midpoint(middle(sorted.len().saturating_sub(1) / 2), middle(sorted.len() / 2))
}

fn served(report: &Report) -> Vec<Served> {
    let mut all: Vec<Served> = Vec::new();
    for row in &report.rows {
        let milliseconds = row.self_ns as f64 / 1e6;
        match all.iter_mut().find(|served| served.by == row.served_by) {
            Some(served) => {
                served.calls += row.calls;
                served.milliseconds += milliseconds;
            }
            None => all.push(Served { by: row.served_by.clone(), calls: row.calls, milliseconds }),
        }
    }
    all.sort_by(|a, b| b.milliseconds.total_cmp(&a.milliseconds));
    all
}

/// Shows the results and the calls that ran on another device.
pub fn print(results: &Results, screen: &mut Screen) {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let Results { model, batch, size, dtype, memory_format, device, threads, .. } = results;
    let what = match (results.train, results.fused) {
        (true, _) => "training step",
        (false, true) => "fused pass",
        (false, false) => "pass",
    };
    screen.line(format!("{model}, {what}: batch {batch}, {size}x{size} pixels, {dtype}, {memory_format}"));
    let weights =
        results.weights.as_ref().map_or_else(|| "random".to_string(), |path| format!("from {path}"));
    screen.line(format!(
        "{} parameters, {weights}, on {device} with {threads} thread{}",
        results.parameters,
        plural(*threads)
    ));
    let ms = |seconds: f64| format!("{:.2}", seconds * 1e3);
    screen.line(format!(
        "median {} ms ({} to {} in {} round{}), {:.2} images per second",
        ms(results.median_seconds),
        ms(results.lowest_seconds),
        ms(results.highest_seconds),
        results.seconds.len(),
        plural(results.seconds.len()),
        results.images_per_second
    ));
    if let Some(loss) = results.loss {
        screen.line(format!("loss of the last step {loss:.4}"));
    }
    let known =
        |text: &str, bytes: Option<u64>| bytes.map(|bytes| format!("{text} {}", screen::bytes(bytes)));
    let parts = [
        known("memory: weights", Some(results.weight_bytes)),
        known("beyond them at most", results.round_bytes),
        known("process at most", results.peak_bytes),
    ];
    screen.line(parts.into_iter().flatten().collect::<Vec<_>>().join(", "));
    screen.line("");
    let whole: f64 = results.served.iter().map(|served| served.milliseconds).sum();
    let mut table = screen::table(&["SERVED BY", "CALLS", "TIME ms", "SHARE %"], &[1, 2, 3]);
    for Served { by, calls, milliseconds } in &results.served {
        let share = 100.0 * milliseconds / whole.max(f64::MIN_POSITIVE);
        table.add_row([by.clone(), calls.to_string(), format!("{milliseconds:.2}"), format!("{share:.1}")]);
    }
    screen.table(&table);
    for Fallback { op, from, to, calls, moves } in &results.fallbacks {
        screen.line(format!(
            "fallback: {op} ran {calls} times on {to} instead of {from}, {moves} tensors moved"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(
            [&[3.0][..], &[1.0, 2.0], &[1.0, 5.0, 9.0], &[1.0, 2.0, 4.0, 8.0]].map(median),
            [3.0, 1.5, 5.0, 3.0]
        );
        assert_eq!(median(&[]), 0.0);
    }
}
