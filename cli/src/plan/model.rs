//! The networks that can be planned.

use crate::train::Network;
use keyway::Result;
use keyway::nn::Module;
use keyway::nn::models::ResNet;

/// The network to plan.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Model {
    /// ResNet-18 for 1,000 classes, as in `keyway bench`.
    Resnet18,
    /// Two convolutions with batch norm, as in `keyway train --model cnn`.
    Cnn,
    /// A convolution of 7x7, as in `keyway train --model three-layer`.
    ThreeLayer,
}

impl Model {
    /// The network's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Model::Resnet18 => "resnet18",
            Model::Cnn => "cnn",
            Model::ThreeLayer => "three-layer",
        }
    }

    /// Default pixels of each side of an image.
    pub fn size(self) -> usize {
        match self {
            Model::Resnet18 => 224,
            Model::Cnn | Model::ThreeLayer => 32,
        }
    }

    /// The minimum number of pixels that leaves an input for the last layer.
    pub fn least_size(self) -> usize {
        match self {
            Model::Resnet18 => 1,
            Model::Cnn | Model::ThreeLayer => 2,
        }
    }

    /// The network for images of three channels and this size.
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn build(self, size: usize) -> Result<Box<dyn Module>> {
        let trained = |network: Network| Ok(Box::new(network.design([3, size, size], 10).build(0)?) as _);
        match self {
            Model::Resnet18 => Ok(Box::new(ResNet::resnet18(1_000)?)),
            Model::Cnn => trained(Network::Cnn),
            Model::ThreeLayer => trained(Network::ThreeLayer),
        }
    }
}
