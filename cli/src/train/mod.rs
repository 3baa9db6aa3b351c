//! `keyway train`: trains a network and writes the results.

mod bag;
mod checkpoint;
mod data;
mod graph;
mod network;
mod outputs;
mod plot;
mod progress;
mod settings;
mod summary;
mod task;

use crate::failure::Failure;
use crate::files::{self, Outputs};
use crate::installed::Choice;
use crate::machine::{self, Format};
use crate::profile;
use crate::screen::{self, Screen};
use checkpoint::{Checkpoint, Target};
use clap::ValueEnum;
use data::Source;
use keyway::dispatcher::parallel;
use keyway::profiler::{self, Profile};
pub use network::Network;
use settings::Settings;
use std::path::PathBuf;
use summary::Results;
use task::Task;

/// The options of `keyway train`.
#[derive(clap::Args)]
#[command(override_usage = "keyway train [OPTIONS] <DATASET>")]
pub struct Options {
    /// The data to train on.
    // Not always: it may stand where `--profile` takes it for a file.
    #[arg(required_unless_present = "profile")]
    dataset: Option<Source>,
    /// The folder of the data set's files, for `cifar10`: `cifar-10-batches-bin` of cifar-10-binary.tar.gz.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The network; if not given, `mlp` for `digits`, `cnn` for `cifar10` and `gcn` for `graph`.
    #[arg(long)]
    model: Option<Network>,
    /// How often all rows are seen; if not given, 60 times for `digits`, 10 for `cifar10` and 200 for `graph`.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true, value_name = "N")]
    epochs: Option<u32>,
    /// Rows of one step; 32 if not given. Not for `graph`.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true, value_name = "N")]
    batch: Option<u32>,
    /// The learning rate of the first epoch, which falls to 0 along half a cosine; if not given, 0.1 for `mlp` (0.01 on
    /// `cifar10`), 0.02 for `cnn`, 0.002 for `three-layer`, 20 for `bag` and
    /// 0.01 for `gcn`, whose does not fall.
    #[arg(long, value_parser = rate, allow_negative_numbers = true)]
    lr: Option<f64>,
    /// Decides the initial weights, the order of the rows and dropout; 0 if not given.
    #[arg(long, value_parser = crate::numbers::seed, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Threads that one op may use; all cores if not given. The weights do not depend on it.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024), allow_negative_numbers = true, value_name = "N")]
    threads: Option<u16>,
    /// The device to train on, such as `cpu` or `cuda:1`.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// The memory format of images and kernels, in a network that has any; contiguous if not given. Not for `graph`.
    #[arg(long, value_name = "FORMAT")]
    memory_format: Option<Format>,
    /// Write a checkpoint here after each epoch, from which `--resume` goes on when the run was stopped. The file is replaced
    /// as a whole. Not for `graph`.
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Go on from this checkpoint, and go on writing to it unless `--checkpoint` names another file. The weights will be those
    /// of a run that was not stopped. Options that are not given are the checkpoint's; others must be the same as there.
    /// Not for `graph`.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Write the weights here, as safetensors.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Draw the loss curve here, as SVG. Not for `graph`.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Write the results here, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// End with a table of which library served which op, and of the copies that reorder memory. With FILE, also write
    /// a trace of the calls there: `keyway profile show` and ui.perfetto.dev open it, and chrome://tracing where the
    /// browser has that page.
    #[arg(long, value_name = "FILE")]
    profile: Option<Option<PathBuf>>,
    /// Write here who held how much memory, op by op and over time: a page for a browser, or JSON if FILE ends in `.json`.
    #[arg(long, value_name = "FILE")]
    profile_memory: Option<PathBuf>,
}

impl Options {
    /// The data, and the file for the trace. In `--profile digits` the name is the data's unless the data is named
    /// elsewhere: a file of that name is `--profile=./digits`.
    fn dataset_and_trace(&self) -> Result<(Source, Option<PathBuf>), Failure> {
        let file = self.profile.clone().flatten();
        match (self.dataset, file) {
            (Some(dataset), file) => Ok((dataset, file)),
            (None, Some(name)) if Source::from_str(&name.to_string_lossy(), false).is_ok() => {
                Source::from_str(&name.to_string_lossy(), false)
                    .map(|dataset| (dataset, None))
                    .map_err(Failure::Usage)
            }
            (None, _) => {
                let names: Vec<String> = Source::value_variants()
                    .iter()
                    .filter_map(|dataset| Some(format!("`{}`", dataset.to_possible_value()?.get_name())))
                    .collect();
                Err(Failure::Usage(format!("expected a DATASET to train on, one of {}", names.join(", "))))
            }
        }
    }
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
/// Wrong usage, no backend, errors of the training, and files that cannot be written.
pub fn run(options: &Options, choice: &Choice, screen: &mut Screen) -> Result<(), Failure> {
    let (source, trace) = options.dataset_and_trace()?;
    if source == Source::Graph && options.model.is_none_or(|model| model == Network::Gcn) {
        return graph::run(options, &trace, choice, screen);
    }
    let at_end = [
        (outputs::TRACE, &trace),
        (outputs::SAVE, &options.save),
        (outputs::PLOT, &options.plot),
        (outputs::MEMORY, &options.profile_memory),
        (outputs::JSON, &options.json),
    ];
    let checkpoint = options.checkpoint.clone().or_else(|| options.resume.clone());
    Outputs::new(at_end.into_iter().chain([(outputs::CHECKPOINT, &checkpoint)])).check()?;
    if options.resume.is_none() {
        // Checked without a backend.
        Settings::new(options, source, None)?.check()?;
    }
    parallel::set_num_threads(options.threads.map_or(0, usize::from));
    parallel::adopt_current_thread();
    let device = machine::device(&options.device, "training", choice)?;

    let resumed = options.resume.as_deref().map(Checkpoint::load).transpose()?;
    let settings = Settings::new(options, source, resumed.as_ref().map(|c| (c.path.as_path(), &c.notes)))?;
    settings.check()?;
    let data = settings.source.load(options.data.as_deref())?;
    let task = Task { data, settings, device };
    let target = checkpoint.map(|path| Target { path, notes: settings.notes() });
    let mut left = settings.epochs as usize;
    if let Some(Checkpoint { path, done, .. }) = &resumed {
        left = left.saturating_sub(done.losses.len());
        let (epochs, path) = (settings.epochs, path.display());
        screen::note(&match left {
            0 => format!("all {epochs} epochs of {path} are done"),
            _ => format!("going on after epoch {} of {epochs} from {path}", done.losses.len()),
        });
    }
    let memory = options.profile_memory.is_some().then(profiler::memory);
    let profile = options.profile.is_some().then(|| profile_for(&trace));
    let trained = task.train(target.as_ref(), resumed.as_ref())?;
    let trace = profile.map(|profile| profile.trace());
    let memory = memory.map(|memory| memory.snapshot());

    let results = Results::new(&task, &trained, trace.as_ref().map(|trace| trace.report.clone()))?;
    let written = Outputs::new(at_end).write(|what, path| match (what, &trace, &memory) {
        (outputs::TRACE, Some(trace), _) => profile::write(path, trace),
        (outputs::MEMORY, _, Some(memory)) => profile::write_memory(path, memory),
        _ => outputs::write(what, path, &trained, &results),
    });
    summary::print(&results, screen);
    trace.iter().for_each(|trace| profile::report_dropped(trace, screen));
    if let Some(target) = target.filter(|_| left > 0) {
        screen.line(format!("wrote {} to {}", outputs::CHECKPOINT, target.path.display()));
    }
    files::report_written(written, screen)
}

/// The profiler of a training: it records every call if a trace is requested.
fn profile_for(trace: &Option<PathBuf>) -> Profile {
    match trace {
        Some(_) => profiler::trace(),
        None => profiler::profile(),
    }
}
