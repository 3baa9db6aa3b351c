//! `keyway plan`: which memory format each call of a network should have.

mod costs;
mod model;
mod summary;

use crate::failure::Failure;
use crate::installed::Choice;
use crate::machine::{self, Format};
use crate::screen::{self, Screen};
use costs::Source;
use keyway::autograd::no_grad;
use keyway::dispatcher::parallel;
use keyway::nn::Module;
use keyway::plan::{Costs, Plan, Preference, plan_with, preferences};
use keyway::rng::{self, Generator};
use keyway::{Device, MemoryFormat, Result, Tensor, device};
use model::Model;
use std::time::Instant;
use summary::Results;

/// The seed of random weights and images.
const SEED: u64 = 0;
/// Warm-up passes.
const WARM_UP: u32 = 2;

/// The network to plan, and for what input.
#[derive(clap::Args)]
#[command(after_long_help = "\
The network runs once; each call of an op on images is measured in row-major order and in channels_last, and so is each conversion \
between them. A minimum cut of the graph of calls gives the formats with the least time of calls and conversions together. The whole \
pass is then measured without the plan and with it. With `--costs declared` no call is measured: a time in row-major order is estimated from the size of the tensors and the multiply-adds of convolutions, and multiplied by what a backend declares for the op, as `keyway backend list` shows; a conversion takes the time to read and write a tensor once. Programs do the same with `keyway::plan::plan` and `Plan::apply`; nothing is \
planned unless asked for.")]
pub struct Options {
    /// The network, with random weights, in use.
    model: Model,
    /// The device to plan for, such as `cpu` or `cuda:1`.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Images of one pass.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true, value_name = "N")]
    batch: u32,
    /// Pixels of each side of an image; if not given, 224 for `resnet18`, else 32.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=8192), allow_negative_numbers = true, value_name = "PIXELS")]
    size: Option<u32>,
    /// The memory format of images and kernels without the plan.
    #[arg(long, value_name = "FORMAT", default_value = "contiguous")]
    memory_format: Format,
    /// Where the times of calls and conversions come from.
    #[arg(long, value_enum, default_value = "measured")]
    costs: Source,
    /// How often each call, and each whole pass, is measured; the least time of a call counts, and the median of passes.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000), allow_negative_numbers = true, value_name = "N")]
    rounds: u32,
    /// Threads that one op may use; all cores if not given.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024), allow_negative_numbers = true, value_name = "N")]
    threads: Option<u16>,
    /// Print JSON, with every call and its conversions.
    #[arg(long)]
    json: bool,
}

/// Plans, applies the plan, and measures the speedup.
///
/// # Errors
/// Wrong usage, no backend, images that are too small for the network, errors of the device.
pub fn run(options: &Options, choice: &Choice, screen: &mut Screen) -> Result<(), Failure> {
    parallel::set_num_threads(options.threads.map_or(0, usize::from));
    parallel::adopt_current_thread();
    let device = machine::device(&options.device, "planning", choice)?;
    let (batch, rounds) = (options.batch as usize, options.rounds);
    let size = options.size.map_or(options.model.size(), |size| size as usize);
    let least = options.model.least_size();
    if size < least {
        let name = options.model.name();
        return Err(Failure::Usage(format!("expected --size of {least} or more for `{name}`, got {size}")));
    }
    let format = MemoryFormat::from(options.memory_format);
    // Two instances of the same network, since a plan converts parameters.
    let (model, images) = load(options.model, [batch, size], device, format)?;
    let (plain, _) = load(options.model, [batch, size], device, format)?;
    let costs = match options.costs {
        Source::Measured => Costs::Measured(rounds as usize),
        Source::Declared => Costs::Declared,
    };
    let plan = plan_with(&model, &images, costs)?;
    let planned = plan.apply(model)?;
    let [(before, expected), (after, scores)] = measure([&plain, &planned], &images, device, rounds)?;
    let difference = scores.sub(&expected)?.abs()?.max_all()?.item::<f32>()?;
    let results = Results {
        model: options.model.name(),
        device: device.to_string(),
        batch,
        size,
        memory_format: format.name(),
        threads: parallel::num_threads(),
        costs: options.costs,
        unplanned: unplanned(planned.plan(), device)?,
        plan: planned.plan(),
        before,
        after,
        difference,
    };
    match options.json {
        true => screen.json(&results.data()),
        false => results.print(screen),
    }
    Ok(())
}

/// The layouts that backends declare for the ops of a plan, which are not planned.
fn unplanned(plan: &Plan, device: Device) -> Result<Vec<Preference>> {
    let mut all = preferences()?;
    let is_of = |op: &str| plan.steps.iter().any(|step| step.op == op);
    all.retain(|declared| !declared.is_planned() && declared.device == device.name() && is_of(declared.op));
    Ok(all)
}

/// The network with its weights, and a batch of square images; the same in each call.
fn load(
    model: Model,
    [batch, size]: [usize; 2],
    device: Device,
    format: MemoryFormat,
) -> Result<(Box<dyn Module>, Tensor)> {
    let generator = Generator::new(SEED);
    let model = rng::with_generator(&generator, || model.build(size))?;
    model.to_device(device)?;
    model.to_memory_format(format)?;
    model.eval();
    let images = || Tensor::randn_with([batch, 3, size, size], device)?.to(format);
    Ok((model, rng::with_generator(&generator, images)?))
}

/// The median seconds of a pass of each module, and its scores. Passes of the modules alternate, so that both run under the
/// same state of the machine.
fn measure(
    modules: [&dyn Module; 2],
    images: &Tensor,
    device: Device,
    rounds: u32,
) -> Result<[(f64, Tensor); 2]> {
    let _off = no_grad();
    let bar = screen::bar("pass {pos}/{len}");
    if let Some(bar) = &bar {
        bar.set_length(u64::from(WARM_UP + rounds));
    }
    let mut seconds = [Vec::new(), Vec::new()];
    for round in 0..WARM_UP + rounds {
        for (module, seconds) in std::iter::zip(modules, &mut seconds) {
            let start = Instant::now();
            module.forward(images)?;
            device::synchronize(device)?;
            if round >= WARM_UP {
                seconds.push(start.elapsed().as_secs_f64());
            }
        }
        if let Some(bar) = &bar {
            bar.inc(1);
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let [plain, planned] = seconds.map(|mut seconds| {
        seconds.sort_by(f64::total_cmp);
        seconds[seconds.len() / 2]
    });
    Ok([(plain, modules[0].forward(images)?), (planned, modules[1].forward(images)?)])
}
