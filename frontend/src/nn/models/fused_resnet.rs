//! Residual networks for inference, with each norm folded into its convolution.

use super::resnet::{BasicBlock, ResNet, STAGES, forward};
use crate::nn::{
    Activation, AdaptiveAvgPool2d, ConvAct2d, Linear, MaxPool2d, Module, ModuleVisitor, Sequential,
};
use crate::profiler::module_scope;
use crate::{Result, Tensor};

/// An inference [`BasicBlock`]: `relu(conv2(relu(conv1(x))) + downsample(x))`, each convolution one call.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::{Module, models::ResNet};
/// let fused = ResNet::new([1, 1, 1, 1], 10)?.fuse()?;
/// let state = fused.state_dict();
/// assert!(state.contains_key("layer1.0.conv1.bias") && !state.contains_key("layer1.0.bn1.bias"));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct FusedBlock {
    conv1: ConvAct2d,
    conv2: ConvAct2d,
    downsample: Option<ConvAct2d>,
}

impl FusedBlock {
    fn of(block: &BasicBlock) -> Result<FusedBlock> {
        let downsample = block.downsample.as_ref();
        Ok(FusedBlock {
            conv1: ConvAct2d::fused(&block.conv1, &block.bn1, Activation::Relu)?,
            conv2: ConvAct2d::fused(&block.conv2, &block.bn2, Activation::Relu)?,
            downsample: downsample
                .map(|shape| ConvAct2d::fused(&shape.conv, &shape.norm, Activation::None))
                .transpose()?,
        })
    }
}

impl Module for FusedBlock {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let inner = forward("conv1", &self.conv1, input)?;
        let shaped = self.downsample.as_ref().map(|shape| forward("downsample", shape, input)).transpose()?;
        let _scope = module_scope("conv2", self.conv2.type_name());
        self.conv2.forward_add(&inner, Some(shaped.as_ref().unwrap_or(input)))
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        visitor.child("conv1", &self.conv1);
        visitor.child("conv2", &self.conv2);
        if let Some(downsample) = &self.downsample {
            visitor.child("downsample", downsample);
        }
    }
}

/// An inference [`ResNet`], built by [`ResNet::fuse`]: each norm is folded into the convolution before it, and bias, shortcut
/// and activation are fused into the convolution's call. It is not trainable: its tensors are buffers, except those of `fc`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::{Module, models::ResNet};
/// use keyway::Tensor;
/// let fused = ResNet::new([1, 1, 1, 1], 10)?.fuse()?;
/// assert_eq!(fused.forward(&Tensor::ones((1, 3, 32, 32))?)?.shape(), [1, 10]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct FusedResNet {
    conv1: ConvAct2d,
    maxpool: MaxPool2d,
    stages: [Sequential; 4],
    avgpool: AdaptiveAvgPool2d,
    fc: Linear,
}

impl ResNet {
    /// The network in evaluation mode (regardless of the current mode) with norms folded: the same scores within rounding, from
    /// 20 convolutions with fused epilogues. Later changes of this network do not affect the fused one, except those of `fc`,
    /// whose tensors are shared.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Module, models::ResNet};
    /// use keyway::Tensor;
    /// let model = ResNet::resnet18(10)?;
    /// let images = Tensor::from_vec(vec![0.5f32; 3 * 32 * 32], (1, 3, 32, 32))?;
    /// assert_eq!(model.fuse()?.forward(&images)?.shape(), [1, 10]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Out of memory; errors of the backend.
    pub fn fuse(&self) -> Result<FusedResNet> {
        let mut stages: [Sequential; 4] = Default::default();
        for (fused, stage) in stages.iter_mut().zip(&self.stages) {
            for block in stage.blocks() {
                *fused = std::mem::take(fused).push(FusedBlock::of(block)?);
            }
        }
        Ok(FusedResNet {
            conv1: ConvAct2d::fused(&self.conv1, &self.bn1, Activation::Relu)?,
            maxpool: self.maxpool,
            stages,
            avgpool: self.avgpool,
            fc: Linear::from_tensors(self.fc.weight(), self.fc.bias())?,
        })
    }
}

impl Module for FusedResNet {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let features = forward("maxpool", &self.maxpool, &forward("conv1", &self.conv1, input)?)?;
        let mut stages = STAGES.into_iter().zip(&self.stages);
        let features = stages.try_fold(features, |value, (name, stage)| forward(name, stage, &value))?;
        let pooled = forward("avgpool", &self.avgpool, &features)?;
        forward("fc", &self.fc, &pooled.flatten(1, -1)?)
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        visitor.child("conv1", &self.conv1);
        for (name, stage) in STAGES.into_iter().zip(&self.stages) {
            visitor.child(name, stage);
        }
        visitor.child("fc", &self.fc);
    }
}
