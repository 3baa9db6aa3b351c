//! Known networks, with the parameter names and initial values of torchvision's, so that weights saved there load here.

mod resnet;

pub use resnet::{BasicBlock, ResNet};
