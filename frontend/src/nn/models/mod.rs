//! Well-known networks, with torchvision's parameter names and initial values, so that its weights load.

mod fused_resnet;
mod resnet;

pub use fused_resnet::{FusedBlock, FusedResNet};
pub use resnet::{BasicBlock, ResNet, Stage};
