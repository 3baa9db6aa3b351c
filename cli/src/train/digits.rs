//! The task: handwritten digits, a network, and SGD with momentum on the cross-entropy, whose learning
//! rate falls to 0 along half a cosine.

use super::network::Network;
use super::progress::Progress;
use crate::failure::Failure;
use keyway::autograd::no_grad;
use keyway::data::{DataLoader, Dataset, Digits};
use keyway::nn::{Module, Reduction, Sequential, loss};
use keyway::optim::{CosineAnnealingLr, LrScheduler, Optimizer, Sgd, SgdOptions};
use keyway::{Device, MemoryFormat, Result, Tensor};
use std::time::Instant;

const MOMENTUM: f64 = 0.9;
const WEIGHT_DECAY: f64 = 1e-3;

/// What to train.
pub struct Task {
    /// The network.
    pub network: Network,
    /// How often all rows are seen.
    pub epochs: usize,
    /// Rows of one step.
    pub batch: usize,
    /// The learning rate of the first epoch.
    pub lr: f64,
    /// Decides the initial weights and the order of the rows.
    pub seed: u64,
    /// Where to train.
    pub device: Device,
    /// How images and kernels lie in memory.
    pub format: MemoryFormat,
}

/// What came of it.
pub struct Trained {
    /// The network.
    pub model: Sequential,
    /// The mean loss of each epoch's rows.
    pub losses: Vec<f64>,
    /// Rows of the test set that the network got right.
    pub right: usize,
    /// Rows of the test set.
    pub test_rows: usize,
    /// Rows of the training set.
    pub train_rows: usize,
    /// Seconds of training, without the reading of data.
    pub seconds: f64,
}

impl Task {
    fn model(&self) -> Result<Sequential> {
        let model = self.network.build(self.seed)?;
        model.to_device(self.device)?;
        model.to_memory_format(self.format)?;
        Ok(model)
    }

    /// Rows of pixels as the network takes them.
    fn inputs(&self, rows: &Tensor) -> Result<Tensor> {
        let inputs = self.network.inputs(&rows.to_device(self.device)?)?;
        if self.network.has_images() { inputs.to_format(self.format) } else { Ok(inputs) }
    }

    /// Trains and tests.
    ///
    /// # Errors
    /// What the backend reports; a loss that is no number any more.
    pub fn train(&self) -> Result<Trained, Failure> {
        let (train, test) = Digits::train_test()?;
        let (train_rows, test_rows) = (train.rows(), test.rows());
        let loader = DataLoader::new(train, self.batch).map_err(keyway::Error::from)?.shuffle(self.seed);
        let model = self.model()?;
        let options = SgdOptions {
            lr: self.lr,
            momentum: MOMENTUM,
            weight_decay: WEIGHT_DECAY,
            ..SgdOptions::default()
        };
        let mut optimizer = Sgd::new(model.parameters(), options)?;
        let mut schedule = CosineAnnealingLr::new(&optimizer, self.epochs as u64, 0.0)?;

        let start = Instant::now();
        let mut progress = Progress::new(self.epochs);
        let mut losses = Vec::with_capacity(self.epochs);
        for epoch in 0..self.epochs {
            let mut sum = 0.0;
            for batch in loader.epoch(epoch as u64) {
                let batch = batch?;
                let inputs = self.inputs(&batch.inputs)?;
                let targets = batch.targets.to_device(self.device)?;
                optimizer.zero_grad();
                let loss = loss::cross_entropy(&model.forward(&inputs)?, &targets, Reduction::Mean)?;
                loss.backward()?;
                optimizer.step()?;
                sum += f64::from(loss.detach().item::<f32>()?) * inputs.size(0)? as f64;
            }
            let mean = sum / train_rows as f64;
            if !mean.is_finite() {
                progress.abandon();
                return Err(Failure::Diverged { epoch: epoch + 1, loss: mean, lr: self.lr });
            }
            losses.push(mean);
            schedule.step(&mut optimizer);
            progress.epoch(epoch + 1, mean);
        }
        progress.finish();
        let seconds = start.elapsed().as_secs_f64();
        let right = self.right(&model, &test)?;
        Ok(Trained { model, losses, right, test_rows, train_rows, seconds })
    }

    /// How many rows the network gets right.
    fn right(&self, model: &Sequential, test: &impl Dataset) -> Result<usize> {
        let _off = no_grad();
        model.eval();
        let rows: Vec<usize> = (0..test.rows()).collect();
        let batch = test.batch(&rows)?;
        let inputs = self.inputs(&batch.inputs)?;
        let scores = model.forward(&inputs)?;
        let right = classes(&scores)?.into_iter().zip(batch.targets.to_vec::<i64>()?);
        Ok(right.filter(|(class, target)| class == target).count())
    }
}

/// The class with the highest score of each row, the first of several.
fn classes(scores: &Tensor) -> Result<Vec<i64>> {
    let classes = scores.size(-1)?.max(1);
    let best = |row: &[f32]| {
        let better = |best: usize, i: usize| if row[i] > row[best] { i } else { best };
        (0..row.len()).fold(0, better) as i64
    };
    Ok(scores.to_device(Device::CPU)?.to_vec::<f32>()?.chunks(classes).map(best).collect())
}
