//! The networks that can be trained on the digits.

use keyway::data::digits::{HIGHEST_LABEL, PIXELS};
use keyway::nn::{BatchNorm2d, Conv2d, ConvOptions, Dropout, Flatten, Linear, MaxPool2d, Relu, Sequential};
use keyway::rng::Philox;
use keyway::{Result, Tensor};

/// The stream of the seed that initial weights are drawn from; the orders of the epochs take the streams from 0 on.
const WEIGHTS_STREAM: u64 = u64::MAX;

const CLASSES: usize = HIGHEST_LABEL as usize + 1;
/// Sizes of the fully connected network, the input first.
const MLP: [usize; 4] = [PIXELS, 128, 64, CLASSES];
/// Pixels of an image's side.
const SIDE: usize = 8;
const _: () = assert!(SIDE * SIDE == PIXELS);
/// Channels of the convolutions, the input first, and sizes of the layers behind them.
const CHANNELS: [usize; 3] = [1, 32, 64];
const LAYERS: [usize; 3] = [CHANNELS[2] * (SIDE / 2) * (SIDE / 2), 128, CLASSES];
/// The share that dropout leaves out behind the pooling, and between the layers.
const DROPPED: [f64; 2] = [0.25, 0.5];

/// The network to train.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Network {
    /// Fully connected layers with ReLU between them.
    Mlp,
    /// Two convolutions with batch norm and ReLU, pooling, and two fully connected layers, with dropout.
    Cnn,
}

impl Network {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Network::Mlp => "mlp",
            Network::Cnn => "cnn",
        }
    }

    /// Whether its inputs are images, which have a memory format.
    pub fn has_images(self) -> bool {
        self == Network::Cnn
    }

    /// The learning rate that it is trained with unless another is asked for.
    pub fn lr(self) -> f64 {
        match self {
            Network::Mlp => 0.1,
            Network::Cnn => 0.02,
        }
    }

    /// Sizes of what goes from layer to layer, the input first: pixels or channels.
    pub fn sizes(self) -> Vec<usize> {
        match self {
            Network::Mlp => MLP.to_vec(),
            Network::Cnn => [&CHANNELS[..], &LAYERS].concat(),
        }
    }

    /// The same for people.
    pub fn describe(self) -> String {
        let joined = |sizes: &[usize]| sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join("-");
        match self {
            Network::Mlp => format!("{} layers", joined(&MLP)),
            Network::Cnn => format!("{} channels, {} layers", joined(&CHANNELS), joined(&LAYERS)),
        }
    }

    /// The network with its initial weights.
    ///
    /// # Errors
    /// What the backend reports.
    pub fn build(self, seed: u64) -> Result<Sequential> {
        let mut rng = Philox::with_stream(seed, WEIGHTS_STREAM);
        let mut model = Sequential::new();
        match self {
            Network::Mlp => {
                for (i, sizes) in MLP.windows(2).enumerate() {
                    if i > 0 {
                        model = model.push(Relu);
                    }
                    model = model.push(Linear::new(sizes[0], sizes[1], &mut rng)?);
                }
            }
            Network::Cnn => {
                for channels in CHANNELS.windows(2) {
                    // The norm takes away what a bias would add.
                    let options = ConvOptions::default().padding(1);
                    let conv = Conv2d::without_bias(channels[0], channels[1], 3, options, &mut rng)?;
                    model = model.push(conv).push(BatchNorm2d::new(channels[1])?).push(Relu);
                }
                model = model
                    .push(MaxPool2d::new(2))
                    .push(Dropout::new(DROPPED[0], seed)?)
                    .push(Flatten::default())
                    .push(Linear::new(LAYERS[0], LAYERS[1], &mut rng)?)
                    .push(Relu)
                    .push(Dropout::new(DROPPED[1], seed.wrapping_add(1))?)
                    .push(Linear::new(LAYERS[1], LAYERS[2], &mut rng)?);
            }
        }
        Ok(model)
    }

    /// Rows of pixels as the network takes them.
    ///
    /// # Errors
    /// Rows of another length.
    pub fn inputs(self, rows: &Tensor) -> Result<Tensor> {
        match self {
            Network::Mlp => Ok(rows.clone()),
            Network::Cnn => rows.reshape(&[-1, 1, SIDE as i64, SIDE as i64]),
        }
    }
}
