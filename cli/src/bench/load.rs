//! The measured workload.

use super::{Model, Options};
use crate::failure::Failure;
use crate::machine;
use crate::screen;
use keyway::autograd::no_grad;
use keyway::device;
use keyway::io::safetensors;
use keyway::nn::models::ResNet;
use keyway::nn::{Module, StateDict, functional};
use keyway::optim::{Optimizer, Sgd, SgdOptions};
use keyway::profiler::{self, Trace};
use keyway::rng::{self, Generator};
use keyway::{DType, Device, MemoryFormat, Result, Tensor};
use std::path::Path;
use std::time::Instant;

/// Classes of a network with random weights.
const CLASSES: usize = 1_000;
/// The seed of random weights, images and classes.
const SEED: u64 = 0;
/// Warm-up rounds.
const WARM_UP: u32 = 2;
/// A learning rate small enough that the loss of any images falls.
const LR: f64 = 0.01;
const MOMENTUM: f64 = 0.9;

/// A network, its input, and the training state if it is to be trained.
pub struct Load {
    /// The device that it is on.
    pub device: Device,
    /// The number of elements of all parameters.
    pub parameters: usize,
    /// Bytes of all parameters and buffers.
    pub weight_bytes: u64,
    model: Box<dyn Module>,
    images: Tensor,
    training: Option<Training>,
}

struct Training {
    targets: Tensor,
    optimizer: Sgd,
}

/// The result of a measurement.
pub struct Measured {
    /// Seconds of each round.
    pub seconds: Vec<f64>,
    /// The loss of the last step.
    pub loss: Option<f32>,
    /// Peak bytes that tensors and kernels held during the rounds, beyond those held before them; `None` if the device has
    /// no statistics.
    pub round_bytes: Option<u64>,
    /// The calls of an additional round, which is not measured.
    pub trace: Trace,
}

impl Load {
    /// Builds the workload for these options.
    ///
    /// # Errors
    /// Weights that cannot be read or do not fit; errors of the device.
    pub fn new(options: &Options, device: Device) -> Result<Load, Failure> {
        let dtype = DType::from(options.dtype);
        let format = MemoryFormat::from(options.memory_format);
        let weights =
            options.weights.as_deref().map(|path| Ok::<_, Failure>((path, safetensors::load(path)?)));
        let weights = weights.transpose()?;
        let classes = weights.as_ref().map_or(CLASSES, |(_, state)| classes(state));
        let Model::Resnet18 = options.model;
        let generator = Generator::new(SEED);
        let model = rng::with_generator(&generator, || ResNet::resnet18(classes))?;
        if let Some((path, mut state)) = weights {
            fill(&model, &mut state).map_err(|error| unfit(path, &error))?;
        }
        model.to_device(device)?;
        let parameters = model.num_parameters();
        // Folded before weights are rounded to a narrow dtype.
        let model: Box<dyn Module> = match options.fused {
            true => Box::new(model.fuse()?),
            false => Box::new(model),
        };
        model.to_memory_format(format)?;
        model.to_dtype(dtype)?;
        let (batch, size) = (options.batch as usize, options.size as usize);
        let images = || Tensor::randn_with([batch, 3, size, size], device)?.to(format)?.to_dtype(dtype);
        let images = rng::with_generator(&generator, images)?;
        let training = match options.train {
            true => {
                let targets =
                    || Tensor::randint_with(0, classes.max(1) as i64, [batch], (DType::I64, device));
                let settings = SgdOptions { lr: LR, momentum: MOMENTUM, ..SgdOptions::default() };
                let optimizer = Sgd::new(model.parameters(), settings)?;
                Some(Training { targets: rng::with_generator(&generator, targets)?, optimizer })
            }
            false => {
                model.eval();
                None
            }
        };
        let bytes = |tensor: &Tensor| (tensor.elem_count() * tensor.dtype().size()) as u64;
        let weight_bytes = model.state_dict().values().map(bytes).sum();
        Ok(Load { device, parameters, weight_bytes, model, images, training })
    }

    /// Runs one pass or step; returns the step's loss.
    fn round(&mut self) -> Result<Option<f32>> {
        let loss = match &mut self.training {
            None => {
                let _off = no_grad();
                self.model.forward(&self.images)?;
                None
            }
            Some(Training { targets, optimizer }) => {
                optimizer.zero_grad();
                let loss = functional::cross_entropy(&self.model.forward(&self.images)?, targets)?;
                loss.backward()?;
                optimizer.step()?;
                Some(loss.detach().to_dtype(DType::F32)?.item::<f32>()?)
            }
        };
        device::synchronize(self.device)?;
        Ok(loss)
    }

    /// Measures `n` rounds, and profiles an additional one: with `events`, each of its calls is recorded.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn measure(&mut self, rounds: u32, events: bool) -> Result<Measured> {
        for _ in 0..WARM_UP {
            self.round()?;
        }
        device::reset_peak(self.device)?;
        let before = machine::tensor_memory(self.device).map(|memory| memory.in_use);
        let bar = screen::bar("round {pos}/{len}");
        if let Some(bar) = &bar {
            bar.set_length(u64::from(rounds));
        }
        let (mut seconds, mut loss) = (Vec::new(), None);
        for _ in 0..rounds {
            let start = Instant::now();
            loss = self.round()?;
            seconds.push(start.elapsed().as_secs_f64());
            if let Some(bar) = &bar {
                bar.inc(1);
            }
        }
        let peak = machine::tensor_memory(self.device).map(|memory| memory.peak_in_use);
        let round_bytes = peak.zip(before).map(|(peak, before)| peak.saturating_sub(before));
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        let profile = if events { profiler::trace() } else { profiler::profile() };
        self.round()?;
        Ok(Measured { seconds, loss, round_bytes, trace: profile.trace() })
    }
}

/// The number of classes of the last layer of these weights.
fn classes(state: &StateDict) -> usize {
    state.get("fc.weight").filter(|weight| weight.rank() == 2).map_or(CLASSES, |weight| weight.shape()[0])
}

/// Loads a state dict. Files from before PyTorch had `num_batches_tracked` lack it; then it stays 0.
fn fill(model: &impl Module, state: &mut StateDict) -> Result<()> {
    for (name, own) in model.state_dict() {
        let norm = name.strip_suffix("num_batches_tracked");
        if norm.is_some_and(|norm| state.contains_key(&format!("{norm}running_mean"))) {
            state.entry(name).or_insert(own);
        }
    }
    model.load_state_dict(state)
}

fn unfit(path: &Path, reason: &keyway::Error) -> Failure {
    Failure::Read { what: "the weights", path: path.to_path_buf(), reason: reason.to_string() }
}
