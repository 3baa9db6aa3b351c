//! The networks that can be trained.

use super::bag::Words;
use super::data::Source;
use keyway::data::digits;
use keyway::nn::init::kaiming_normal;
use keyway::nn::{
    BagMode, BatchNorm2d, Conv2d, ConvOptions, Dropout, EmbeddingBag, Flatten, Linear, MaxPool2d, Relu,
    Sequential,
};
use keyway::optim::SgdOptions;
use keyway::rng::{self, Generator};
use keyway::{Result, Tensor};

/// Mixed into the seed for weights and dropout: the orders of the epochs are drawn from the streams of the seed itself. (The
/// golden ratio as a fraction of 2^64.)
const OTHER_SEED: u64 = 0x9E37_79B9_7F4A_7C15;
/// The dropout probabilities after the pooling, and between the layers.
const DROPPED: [f64; 2] = [0.25, 0.5];
const MOMENTUM: f64 = 0.9;
const WEIGHT_DECAY: f64 = 1e-3;
/// Values that a pixel of `digits` may have.
const LEVELS: usize = digits::BRIGHTEST as usize + 1;
/// The embedding size of a word.
const WORD: usize = 32;
/// Side of the three-layer network's kernels, in pixels.
const WIDE: usize = 7;

/// The network to train.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Network {
    /// Fully connected layers with ReLU between them.
    Mlp,
    /// Two convolutions with batch norm and ReLU, pooling, and two fully connected layers, with dropout. The first of these
    /// is a convolution as large as its image, which reads it in its memory format.
    Cnn,
    /// A convolution of 7x7 with ReLU, pooling, and two fully connected layers, the first as in the CNN.
    ThreeLayer,
    /// Each pixel with its value is a word: a table of words with sparse gradients, summed by images, and a fully connected
    /// layer. For `digits`.
    Bag,
    /// A graph convolution net, whose products with the graph are those of a sparse matrix. For `graph`.
    Gcn,
}

impl Network {
    /// The network's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Network::Mlp => "mlp",
            Network::Cnn => "cnn",
            Network::ThreeLayer => "three-layer",
            Network::Bag => "bag",
            Network::Gcn => "gcn",
        }
    }

    /// Whether the inputs are images, which have a memory format.
    pub fn has_images(self) -> bool {
        !matches!(self, Network::Mlp | Network::Bag | Network::Gcn)
    }

    /// The default learning rate.
    pub fn lr(self, source: Source) -> f64 {
        match (self, source) {
            (Network::Mlp, Source::Digits) => 0.1,
            (Network::Mlp, _) => 0.01,
            (Network::Cnn, _) => 0.02,
            (Network::ThreeLayer, _) => 0.002,
            (Network::Bag, _) => 20.0,
            (Network::Gcn, _) => 0.01,
        }
    }

    /// The optimizer's options at a learning rate: momentum and weight decay would modify every row of an embedding table.
    pub fn optimizer(self, lr: f64) -> SgdOptions {
        match self {
            Network::Bag => SgdOptions { lr, ..SgdOptions::default() },
            _ => SgdOptions { lr, momentum: MOMENTUM, weight_decay: WEIGHT_DECAY, ..SgdOptions::default() },
        }
    }

    /// The layers for images of these channels, height and width, and `classes` classes.
    pub fn design(self, image: [usize; 3], classes: usize) -> Design {
        let [channels, height, width] = image;
        let pooled = |channels: usize| channels * (height / 2) * (width / 2);
        let (channels, layers) = match self {
            Network::Mlp => (vec![], vec![channels * height * width, 128, 64, classes]),
            Network::Cnn => (vec![channels, 32, 64], vec![pooled(64), 128, classes]),
            Network::ThreeLayer => (vec![channels, 32], vec![pooled(32), 100, classes]),
            // Built by the graph task.
            Network::Gcn => (vec![], vec![]),
            Network::Bag => (vec![], vec![Words::count(channels * height * width, LEVELS), WORD, classes]),
        };
        Design { network: self, image, channels, layers }
    }
}

/// A network for one kind of image.
pub struct Design {
    network: Network,
    image: [usize; 3],
    /// Channels of the convolutions, the input's first; empty without convolutions.
    channels: Vec<usize>,
    /// Sizes of the fully connected layers, the input first.
    layers: Vec<usize>,
}

impl Design {
    /// Sizes between the layers, the input first: pixels or channels.
    pub fn sizes(&self) -> Vec<usize> {
        [self.channels.as_slice(), &self.layers].concat()
    }

    /// The design as text.
    pub fn describe(&self) -> String {
        let joined = |sizes: &[usize]| sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join("-");
        let layers = format!("{} layers", joined(&self.layers));
        match self.channels.as_slice() {
            [] => layers,
            channels => format!("{} channels, {layers}", joined(channels)),
        }
    }

    /// The network with its initial weights.
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn build(&self, seed: u64) -> Result<Sequential> {
        let generator = Generator::new(seed ^ OTHER_SEED);
        rng::with_generator(&generator, || match self.network {
            Network::Mlp => self.mlp(),
            Network::Cnn => self.cnn(&generator),
            Network::ThreeLayer => self.three_layer(),
            Network::Bag => self.bag(),
            Network::Gcn => Ok(Sequential::new()),
        })
    }

    fn mlp(&self) -> Result<Sequential> {
        let mut model = Sequential::new();
        for (i, sizes) in self.layers.windows(2).enumerate() {
            if i > 0 {
                model = model.push(Relu);
            }
            model = model.push(Linear::new(sizes[0], sizes[1])?);
        }
        Ok(model)
    }

    fn cnn(&self, generator: &Generator) -> Result<Sequential> {
        let mut model = Sequential::new();
        for channels in self.channels.windows(2) {
            // The norm subtracts any bias.
            let options = ConvOptions::default().padding(1);
            let conv = Conv2d::without_bias(channels[0], channels[1], 3, options)?;
            model = model.push(conv).push(BatchNorm2d::new(channels[1])?).push(Relu);
        }
        Ok(model
            .push(MaxPool2d::new(2))
            .push(Dropout::new(DROPPED[0])?.generator(generator.clone()))
            .push(self.over_all_pixels()?)
            .push(Flatten::default())
            .push(Relu)
            .push(Dropout::new(DROPPED[1])?.generator(generator.clone()))
            .push(Linear::new(self.layers[1], self.layers[2])?))
    }

    /// Sizes of the output of the pooling.
    fn pooled(&self) -> [usize; 3] {
        let [_, height, width] = self.image;
        [self.channels[self.channels.len() - 1], height / 2, width / 2]
    }

    /// The first fully connected layer: a convolution with the size of the pooled image. Flattening the image first would
    /// reorder an image in channels_last. The initial values are those of a linear layer.
    fn over_all_pixels(&self) -> Result<Conv2d> {
        let [channels, height, width] = self.pooled();
        Conv2d::new(channels, self.layers[1], [height, width])
    }

    /// An embedding of words, followed by a linear layer on their mean.
    fn bag(&self) -> Result<Sequential> {
        let pixels = self.image.iter().product();
        let table = EmbeddingBag::new(self.layers[0], self.layers[1])?.mode(BagMode::Mean).sparse(true);
        Ok(Sequential::new()
            .push(Words::new(pixels, LEVELS))
            .push(table)
            .push(Linear::new(self.layers[1], self.layers[2])?))
    }

    /// Weights are normal with a variance of `2 / fan_in`, biases 0.
    fn three_layer(&self) -> Result<Sequential> {
        let weight = |sizes: &[usize]| kaiming_normal(sizes);
        let zeros = |count: usize| Tensor::from_vec(vec![0.0f32; count], [count]);
        let filters = weight(&[self.channels[1], self.channels[0], WIDE, WIDE])?;
        let options = ConvOptions::default().padding(WIDE / 2);
        let conv = Conv2d::from_tensors(filters, Some(zeros(self.channels[1])?), options)?;
        let ([channels, height, width], [_, hidden, classes]) =
            (self.pooled(), [0, 1, 2].map(|i| self.layers[i]));
        let over_all_pixels = Conv2d::from_tensors(
            weight(&[hidden, channels, height, width])?,
            Some(zeros(hidden)?),
            ConvOptions::default(),
        )?;
        let last = Linear::from_tensors(weight(&[classes, hidden])?, Some(zeros(classes)?))?;
        Ok(Sequential::new()
            .push(conv)
            .push(Relu)
            .push(MaxPool2d::new(2))
            .push(over_all_pixels)
            .push(Flatten::default())
            .push(Relu)
            .push(last))
    }

    /// Rows of pixels in the shape of the network's input.
    ///
    /// # Errors
    /// Rows of another length.
    pub fn inputs(&self, rows: &Tensor) -> Result<Tensor> {
        let count = rows.dim(0)?;
        let [channels, height, width] = self.image;
        match self.network.has_images() {
            true => rows.reshape([count, channels, height, width]),
            false => rows.reshape([count, channels * height * width]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway::nn::Module;

    #[test]
    fn layers_follow_from_images_and_classes() {
        let described = |network: Network, image| network.design(image, 10).describe();
        for (network, digits, photographs) in [
            (Network::Mlp, "64-128-64-10 layers", "3072-128-64-10 layers"),
            (Network::Cnn, "1-32-64 channels, 1024-128-10 layers", "3-32-64 channels, 16384-128-10 layers"),
            (Network::ThreeLayer, "1-32 channels, 512-100-10 layers", "3-32 channels, 8192-100-10 layers"),
        ] {
            assert_eq!(described(network, [1, 8, 8]), digits);
            assert_eq!(described(network, [3, 32, 32]), photographs);
        }
    }

    #[test]
    fn the_three_layer_network_begins_as_he_and_others_say() {
        let model = Network::ThreeLayer.design([3, 32, 32], 10).build(1).unwrap();
        let state = model.state_dict();
        let names: Vec<&str> = state.keys().map(String::as_str).collect();
        assert_eq!(names, ["0.bias", "0.weight", "3.bias", "3.weight", "6.bias", "6.weight"]);
        for (name, fan_in) in [("0.weight", 147.0), ("3.weight", 8192.0), ("6.weight", 100.0)] {
            let values = state[name].to_vec::<f32>().unwrap();
            let square: f64 = values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / values.len() as f64;
            assert!((square * fan_in / 2.0 - 1.0).abs() < 0.15, "{name}: {square}");
        }
        assert!(state["0.bias"].to_vec::<f32>().unwrap().iter().all(|&v| v == 0.0));
    }
}
