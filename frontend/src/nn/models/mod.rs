//! Known networks, with the parameter names and initial values of torchvision's, so that weights saved there load here.

mod fused_resnet;
mod resnet;

pub use fused_resnet::{FusedBlock, FusedResNet};
pub use resnet::{BasicBlock, ResNet, Stage};
