//! `keyway bench`: measures a known network.

mod load;
mod summary;

use crate::failure::Failure;
use crate::files::{self, Outputs};
use crate::installed::Choice;
use crate::machine::{self, Format};
use crate::profile;
use crate::screen::Screen;
use keyway::DType;
use keyway::dispatcher::parallel;
use load::Load;
use std::path::PathBuf;
use summary::Results;

/// The outputs.
const JSON: &str = "the results";
const TRACE: &str = "the trace";

/// The network to measure.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Model {
    /// ResNet-18: 18 layers, 11.7 million parameters for 1,000 classes.
    Resnet18,
}

impl Model {
    fn name(self) -> &'static str {
        match self {
            Model::Resnet18 => "resnet18",
        }
    }
}

/// The dtype of weights and images.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Dtype {
    /// 32 bits.
    F32,
    /// 16 bits, with the exponent of f32.
    Bf16,
}

impl From<Dtype> for DType {
    fn from(dtype: Dtype) -> DType {
        match dtype {
            Dtype::F32 => DType::F32,
            Dtype::Bf16 => DType::BF16,
        }
    }
}

/// The options of `keyway bench`.
#[derive(clap::Args)]
pub struct Options {
    /// The network.
    #[arg(long, default_value = "resnet18")]
    model: Model,
    /// Images of one pass.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true, value_name = "N")]
    batch: u32,
    /// The dtype of weights and images.
    #[arg(long, default_value = "f32")]
    dtype: Dtype,
    /// The memory format of images and kernels.
    #[arg(long, value_name = "FORMAT", default_value = "contiguous")]
    memory_format: Format,
    /// Measure steps of a training: forward, cross entropy, backward, and SGD with momentum. Else passes of the network in
    /// use, without gradients.
    #[arg(long)]
    train: bool,
    /// Measure the network as it is in use, each norm folded into the convolution before it, and bias, shortcut and
    /// activation in the convolution's call.
    #[arg(long, conflicts_with = "train")]
    fused: bool,
    /// Take the weights from this safetensors file, which has torchvision's names; the number of classes is that of
    /// `fc.weight`. If not given, the weights are random and the same in each run, and there are 1,000 classes.
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Pixels of each side of an image. The images are random and the same in each run.
    #[arg(long, default_value_t = 224, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true, value_name = "PIXELS")]
    size: u32,
    /// Threads that one op may use; all cores if not given.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024), allow_negative_numbers = true, value_name = "N")]
    threads: Option<u16>,
    /// How often to measure, after two rounds for warming up.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000), allow_negative_numbers = true, value_name = "N")]
    rounds: u32,
    /// The device to measure on, such as `cpu` or `cuda:1`.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Show where the time of one more round goes, by op and shapes. With a file, also write a trace of the calls there:
    /// `keyway profile show` and ui.perfetto.dev open it, and chrome://tracing where the browser has that page.
    #[arg(long, value_name = "FILE")]
    profile: Option<Option<PathBuf>>,
    /// Write the results here, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the benchmark.
///
/// # Errors
/// Wrong usage, no backend, weights that do not fit, device errors, and files that cannot be written.
pub fn run(options: &Options, choice: &Choice, screen: &mut Screen) -> Result<(), Failure> {
    let file = options.profile.clone().flatten();
    let outputs = Outputs::new([(JSON, &options.json), (TRACE, &file)]);
    outputs.check()?;
    parallel::set_num_threads(options.threads.map_or(0, usize::from));
    parallel::adopt_current_thread();
    let device = machine::device(&options.device, "measuring", choice)?;
    let mut load = Load::new(options, device)?;
    let measured = load.measure(options.rounds, file.is_some())?;
    let results = Results::new(options, &load, &measured);
    let written = outputs.write(|what, path| {
        if what == TRACE {
            return profile::write(path, &measured.trace);
        }
        let text = serde_json::to_string_pretty(&results).map_err(|error| error.to_string())?;
        files::text(path, &(text + "\n"))
    });
    summary::print(&results, screen);
    if options.profile.is_some() {
        screen.line("");
        profile::print(&measured.trace.report, profile::TOP, screen);
        profile::report_dropped(&measured.trace, screen);
    }
    files::report_written(written, screen)
}
