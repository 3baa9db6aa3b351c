//! The task: handwritten digits, a fully connected network, and SGD with momentum on the cross-entropy, whose learning
//! rate falls to 0 along half a cosine.

use super::progress::Progress;
use crate::failure::Failure;
use keyway::autograd::no_grad;
use keyway::data::digits::{HIGHEST_LABEL, PIXELS};
use keyway::data::{DataLoader, Dataset, Digits};
use keyway::nn::{Linear, Module, Reduction, Relu, Sequential, loss};
use keyway::optim::{CosineAnnealingLr, LrScheduler, Optimizer, Sgd, SgdOptions};
use keyway::rng::Philox;
use keyway::{Device, Result, Tensor};
use std::time::Instant;

/// Sizes of the layers, the input first.
pub const LAYERS: [usize; 4] = [PIXELS, 128, 64, HIGHEST_LABEL as usize + 1];

const MOMENTUM: f64 = 0.9;
const WEIGHT_DECAY: f64 = 1e-3;

/// The stream of the seed that initial weights are drawn from; the orders of the epochs take the streams from 0 on.
const WEIGHTS_STREAM: u64 = u64::MAX;

/// What to train.
pub struct Task {
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
        let mut rng = Philox::with_stream(self.seed, WEIGHTS_STREAM);
        let mut model = Sequential::new();
        for (i, sizes) in LAYERS.windows(2).enumerate() {
            if i > 0 {
                model = model.push(Relu);
            }
            model = model.push(Linear::new(sizes[0], sizes[1], &mut rng)?);
        }
        model.to_device(self.device)?;
        Ok(model)
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
                let inputs = batch.inputs.to_device(self.device)?;
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
        let scores = model.forward(&batch.inputs.to_device(self.device)?)?;
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
