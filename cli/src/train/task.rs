//! Image classification: labelled images, a network, and SGD on the cross-entropy, whose learning rate falls to 0 along half a
//! cosine.

use super::checkpoint::{Checkpoint, Target};
use super::data::Data;
use super::network::Design;
use super::progress::Progress;
use super::settings::Settings;
use crate::failure::Failure;
use keyway::autograd::no_grad;
use keyway::data::DataLoader;
use keyway::nn::{Module, Sequential, functional};
use keyway::optim::lr_scheduler::{CosineAnnealingLr, LrScheduler};
use keyway::optim::{Optimizer, Sgd};
use keyway::{Device, MemoryFormat, Result, Tensor, profiler};
use std::time::Instant;

/// Batch size of the test.
const TESTED: usize = 500;

/// A training task.
pub struct Task {
    /// The data set.
    pub data: Data,
    /// The options that decide the result.
    pub settings: Settings,
    /// The device.
    pub device: Device,
}

/// The progress of a training.
#[derive(Clone, Default)]
pub struct Done {
    /// The mean loss over the rows of each finished epoch.
    pub losses: Vec<f64>,
    /// Seconds of these epochs, in all runs.
    pub seconds: f64,
}

/// The results of a training.
pub struct Trained {
    /// The trained network.
    pub model: Sequential,
    /// The progress at the end.
    pub done: Done,
    /// Correctly classified test rows.
    pub right: usize,
}

impl Task {
    /// The network's layers for these images.
    pub fn design(&self) -> Design {
        self.settings.network.design(self.data.image, self.data.classes)
    }

    fn model(&self) -> Result<Sequential> {
        let model = self.design().build(self.settings.seed)?;
        model.to_device(self.device)?;
        model.to_memory_format(self.settings.format.into())?;
        Ok(model)
    }

    /// Rows of pixels in the shape of the network's input.
    fn inputs(&self, rows: &Tensor) -> Result<Tensor> {
        let inputs = self.design().inputs(&rows.to_device(self.device)?)?;
        match self.settings.network.has_images() {
            true => inputs.to(MemoryFormat::from(self.settings.format)),
            false => Ok(inputs),
        }
    }

    /// Trains, from a checkpoint if there is one, and tests. Each epoch ends with a checkpoint if there is a target.
    ///
    /// # Errors
    /// A checkpoint that does not fit or cannot be written; errors of the backend; a loss that became NaN or infinite.
    pub fn train(&self, target: Option<&Target>, resumed: Option<&Checkpoint>) -> Result<Trained, Failure> {
        let Settings { epochs, batch, lr, seed, .. } = self.settings;
        let train = &*self.data.train;
        let loader = DataLoader::new(train, batch as usize).map_err(keyway::Error::from)?.shuffle(seed);
        let model = self.model()?;
        let mut optimizer = Sgd::new(model.parameters(), self.settings.network.optimizer(lr))?;
        let mut schedule = CosineAnnealingLr::new(&optimizer, u64::from(epochs))?;
        let mut done = Done::default();
        if let Some(checkpoint) = resumed {
            checkpoint.restore(&model, &mut optimizer, &self.data.sha256)?;
            done = checkpoint.done.clone();
            schedule.seek(done.losses.len() as u64, &mut optimizer)?;
        }

        let mut progress = Progress::new(epochs as usize, done.losses.len());
        for epoch in done.losses.len()..epochs as usize {
            let _scope = profiler::scope(&format!("epoch {}", epoch + 1));
            let start = Instant::now();
            let mut sum = 0.0;
            for batch in loader.epoch(epoch as u64) {
                let batch = batch?;
                let inputs = self.inputs(&batch.inputs)?;
                let targets = batch.targets.to_device(self.device)?;
                optimizer.zero_grad();
                let loss = functional::cross_entropy(&model.forward(&inputs)?, &targets)?;
                loss.backward()?;
                optimizer.step()?;
                sum += f64::from(loss.detach().item::<f32>()?) * inputs.dim(0)? as f64;
            }
            let mean = sum / train.len() as f64;
            if !mean.is_finite() {
                progress.abandon();
                return Err(Failure::Diverged { epoch: epoch + 1, loss: mean, lr });
            }
            schedule.step(&mut optimizer)?;
            done.losses.push(mean);
            done.seconds += start.elapsed().as_secs_f64();
            if let Some(target) = target {
                target.save(&model, &optimizer, &self.data.sha256, &done)?;
            }
            progress.epoch(epoch + 1, mean);
        }
        progress.finish();
        let right = self.right(&model)?;
        Ok(Trained { model, done, right })
    }

    /// The number of test rows that the network classifies correctly.
    fn right(&self, model: &Sequential) -> Result<usize> {
        let _scope = profiler::scope("test");
        let _off = no_grad();
        model.eval();
        let loader = DataLoader::new(&*self.data.test, TESTED)?;
        let mut right = 0;
        for batch in loader.epoch(0) {
            let batch = batch?;
            let scores = model.forward(&self.inputs(&batch.inputs)?)?;
            let pairs = classes(&scores)?.into_iter().zip(batch.targets.to_vec::<i64>()?);
            right += pairs.filter(|(class, target)| class == target).count();
        }
        Ok(right)
    }
}

/// The class with the highest score of each row, the first of several.
fn classes(scores: &Tensor) -> Result<Vec<i64>> {
    let classes = scores.dim(-1)?.max(1);
    let best = |row: &[f32]| {
        let better = |best: usize, i: usize| if row[i] > row[best] { i } else { best };
        (0..row.len()).fold(0, better) as i64
    };
    Ok(scores.to_device(Device::CPU)?.to_vec::<f32>()?.chunks(classes).map(best).collect())
}
