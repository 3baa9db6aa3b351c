//! `keyway train`: trains a network and writes what came of it.

mod digits;
mod network;
mod outputs;
mod plot;
mod progress;
mod summary;

use crate::failure::Failure;
use crate::files::{self, Outputs};
use crate::installed::Choice;
use crate::screen::Screen;
use crate::{installed, names};
use keyway::dispatcher::parallel;
use keyway::profiler;
use keyway::{Device, MemoryFormat};
use network::Network;
use std::path::PathBuf;
use summary::Results;

/// The data to train on.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Dataset {
    /// 1,797 handwritten digits of 8x8 pixels, embedded in the program; the last 360 are for testing.
    Digits,
}

/// What to train, and how.
#[derive(clap::Args)]
pub struct Options {
    /// The data to train on.
    dataset: Dataset,
    /// The network.
    #[arg(long, default_value = "mlp")]
    model: Network,
    /// How often all rows are seen.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..), value_name = "N")]
    epochs: u32,
    /// Rows of one step.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..), value_name = "N")]
    batch: u32,
    /// The learning rate of the first epoch, which falls to 0 along half a cosine; if not given, 0.1 for `mlp` and 0.02 for
    /// `cnn`.
    #[arg(long, value_parser = rate, allow_negative_numbers = true)]
    lr: Option<f64>,
    /// Decides the initial weights and the order of the rows.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads that one op may use; all cores if not given. The weights do not depend on it.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024), value_name = "N")]
    threads: Option<u16>,
    /// The device to train on, such as `cpu` or `cuda:1`.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// How images and kernels lie in memory, in a network that has any.
    #[arg(long, value_name = "FORMAT", default_value = "contiguous")]
    memory_format: Format,
    /// Write the weights here, as safetensors.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Draw the loss curve here, as SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Write the results here, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// End with a table of which library served which op.
    #[arg(long)]
    profile: bool,
}

/// A memory format, by its name.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
enum Format {
    /// Row-major.
    Contiguous,
    /// The channels of a pixel side by side.
    ChannelsLast,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(rate),
        _ => Err("expected a number above 0, such as 0.1".to_string()),
    }
}

/// Trains.
///
/// # Errors
/// Wrong usage, no backend, what the training reports, and files that cannot be written.
pub fn run(options: &Options, choice: &Choice, screen: &mut Screen) -> Result<(), Failure> {
    let outputs = Outputs::new([
        (outputs::SAVE, &options.save),
        (outputs::PLOT, &options.plot),
        (outputs::JSON, &options.json),
    ]);
    outputs.check()?;
    let format = match options.memory_format {
        Format::Contiguous => MemoryFormat::Contiguous,
        Format::ChannelsLast => MemoryFormat::ChannelsLast,
    };
    if format == MemoryFormat::ChannelsLast && !options.model.has_images() {
        let what = format!(
            "`{}` has no images that could lie in channels_last; use `--model cnn`",
            options.model.name()
        );
        return Err(Failure::Usage(what));
    }
    parallel::set_num_threads(options.threads.map_or(0, usize::from));
    parallel::adopt_current_thread();
    let device = device(&options.device, choice)?;

    let profile = options.profile.then(profiler::profile);
    let task = digits::Task {
        network: options.model,
        epochs: options.epochs as usize,
        batch: options.batch as usize,
        lr: options.lr.unwrap_or(options.model.lr()),
        seed: options.seed,
        device,
        format,
    };
    let trained = task.train()?;
    let report = profile.map(|profile| profile.report());

    let results = Results::new(&task, &trained, report)?;
    let written = outputs.write(|what, path| outputs::write(what, path, &trained, &results));
    summary::print(&results, screen);
    files::tell(written, screen)
}

/// The device, if somebody serves it.
fn device(name: &str, choice: &Choice) -> Result<Device, Failure> {
    let backends = installed::start(choice)?;
    let device = names::device(name)?;
    if keyway::dispatcher::device::server(device.kind).is_some() {
        return Ok(device);
    }
    let found = match backends.discovery.candidates.len() {
        0 => "none is installed",
        _ => "none of the libraries that were found serves it (`keyway doctor` says why)",
    };
    let advice = installed::advice(device.name(), &backends.discovery);
    Err(Failure::NoBackend(format!("training on `{}` needs a backend, and {found}: {advice}", device.name())))
}
