//! Residual networks of basic blocks.

use crate::nn::{
    AdaptiveAvgPool2d, BatchNorm2d, Conv2d, ConvOptions, Linear, MaxPool2d, MaxPoolOptions, Module,
    ModuleVisitor, init,
};
use crate::profiler::module_scope;
use crate::{Result, Tensor};

/// Channels of each stage.
const WIDTHS: [usize; 4] = [64, 128, 256, 512];
/// Names of the stages.
pub(super) const STAGES: [&str; 4] = ["layer1", "layer2", "layer3", "layer4"];
/// Channels of the input images.
const COLOURS: usize = 3;

/// A convolution without a bias, since the following norm would cancel it, padded so that a stride of 1 preserves the image
/// size. The initial values are normal with variance `2 / fan_out`.
fn conv(inputs: usize, outputs: usize, kernel: usize, stride: usize) -> Result<Conv2d> {
    let weight = init::kaiming_normal_with((outputs, inputs, kernel, kernel), 0.0, init::Fan::Out)?;
    Conv2d::from_tensors(weight, None, ConvOptions::default().stride(stride).padding(kernel / 2))
}

/// Calls the forward function of a child, recorded under its name in a profile.
pub(super) fn forward(name: &str, child: &impl Module, input: &Tensor) -> Result<Tensor> {
    let _scope = module_scope(name, child.type_name());
    child.forward(input)
}

/// Two 3x3 convolutions with batch norm and a residual connection: torchvision's `BasicBlock`.
///
/// ```text
/// relu(bn2(conv2(relu(bn1(conv1(x))))) + downsample(x))
/// ```
///
/// `downsample` is a 1x1 convolution with batch norm if the shape of the result differs from the input's, else `None`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::{Module, models::BasicBlock};
/// use keyway::Tensor;
/// let block = BasicBlock::new(8, 16, 2)?;
/// let images = Tensor::from_vec(vec![1.0f32; 2 * 8 * 6 * 6], (2, 8, 6, 6))?;
/// assert_eq!(block.forward(&images)?.shape(), [2, 16, 3, 3]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct BasicBlock {
    pub(super) conv1: Conv2d,
    pub(super) bn1: BatchNorm2d,
    pub(super) conv2: Conv2d,
    pub(super) bn2: BatchNorm2d,
    pub(super) downsample: Option<Downsample>,
}

impl BasicBlock {
    /// A block with these channels in and out, whose first convolution has this stride, in f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Module, models::BasicBlock};
    /// let names = |block: BasicBlock| block.state_dict().into_keys().any(|name| name.starts_with("downsample"));
    /// assert!(!names(BasicBlock::new(8, 8, 1)?));
    /// assert!(names(BasicBlock::new(8, 16, 1)?));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Sizes whose product overflows.
    pub fn new(inputs: usize, outputs: usize, stride: usize) -> Result<BasicBlock> {
        let (conv1, conv2) = (conv(inputs, outputs, 3, stride)?, conv(outputs, outputs, 3, 1)?);
        let downsample = match (stride, inputs == outputs) {
            (1, true) => None,
            _ => {
                let conv = conv(inputs, outputs, 1, stride)?;
                Some(Downsample { conv, norm: BatchNorm2d::new(outputs)? })
            }
        };
        let (bn1, bn2) = (BatchNorm2d::new(outputs)?, BatchNorm2d::new(outputs)?);
        Ok(BasicBlock { conv1, bn1, conv2, bn2, downsample })
    }
}

impl Module for BasicBlock {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        // In place, since the derivative of a norm does not read its result.
        let inner = forward("bn1", &self.bn1, &forward("conv1", &self.conv1, input)?)?.relu_()?;
        let outer = forward("bn2", &self.bn2, &forward("conv2", &self.conv2, &inner)?)?;
        let sum = match &self.downsample {
            Some(downsample) => outer.add_(&forward("downsample", downsample, input)?)?,
            None => outer.add_(input)?,
        };
        sum.relu_()
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        visitor.child("conv1", &self.conv1);
        visitor.child("bn1", &self.bn1);
        visitor.child("conv2", &self.conv2);
        visitor.child("bn2", &self.bn2);
        if let Some(downsample) = &self.downsample {
            visitor.child("downsample", downsample);
        }
    }
}

/// A 1x1 convolution with batch norm; parameters are named as in a `Sequential` of the two.
#[derive(Debug)]
pub(super) struct Downsample {
    pub(super) conv: Conv2d,
    pub(super) norm: BatchNorm2d,
}

impl Module for Downsample {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        forward("1", &self.norm, &forward("0", &self.conv, input)?)
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        visitor.child("0", &self.conv);
        visitor.child("1", &self.norm);
    }
}

/// A chain of blocks, of which only the first may change the image size.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::{Module, models::ResNet};
/// use keyway::Tensor;
/// let model = ResNet::new([1, 1, 1, 1], 10)?;
/// let y = model.stages()[1].forward(&Tensor::ones((1, 64, 8, 8))?)?;
/// assert_eq!(y.shape(), [1, 128, 4, 4]);
/// # Ok(()) }
/// ```
#[derive(Default, Debug)]
pub struct Stage(Vec<BasicBlock>);

impl Stage {
    /// The blocks, in order of application.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::models::ResNet;
    /// let model = ResNet::new([1, 2, 1, 1], 10)?;
    /// assert_eq!(model.stages()[1].blocks().len(), 2);
    /// # Ok(()) }
    /// ```
    pub fn blocks(&self) -> &[BasicBlock] {
        &self.0
    }
}

impl Module for Stage {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let mut blocks = self.0.iter().enumerate();
        blocks.try_fold(input.clone(), |value, (i, block)| forward(&i.to_string(), block, &value))
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        for (i, block) in self.0.iter().enumerate() {
            visitor.child(&i.to_string(), block);
        }
    }
}

/// A residual network of [`BasicBlock`]s for images `[batch, 3, height, width]` that returns logits `[batch, classes]` (K. He
/// and others, "Deep residual learning for image recognition", 2016).
///
/// Names, shapes and initial values are those of torchvision's `ResNet`, so its weights load: convolutions are normal with
/// variance `2 / fan_out`, norms start with weights of 1 and biases of 0, `fc` is initialized as PyTorch's linear layer.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::{Module, models::ResNet};
/// use keyway::Tensor;
/// let model = ResNet::resnet18(10)?;
/// assert_eq!(model.state_dict()["layer2.0.downsample.0.weight"].shape(), [128, 64, 1, 1]);
/// let images = Tensor::from_vec(vec![0.5f32; 2 * 3 * 32 * 32], (2, 3, 32, 32))?;
/// assert_eq!(model.forward(&images)?.shape(), [2, 10]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ResNet {
    pub(super) conv1: Conv2d,
    pub(super) bn1: BatchNorm2d,
    pub(super) maxpool: MaxPool2d,
    pub(super) stages: [Stage; 4],
    pub(super) avgpool: AdaptiveAvgPool2d,
    pub(super) fc: Linear,
}

impl ResNet {
    /// ResNet-18: two blocks in each stage.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Module, models::ResNet};
    /// assert_eq!(ResNet::resnet18(1_000)?.num_parameters(), 11_689_512);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Sizes whose product overflows.
    pub fn resnet18(classes: usize) -> Result<ResNet> {
        ResNet::new([2; 4], classes)
    }

    /// A network with these numbers of blocks per stage, `[3, 4, 6, 3]` for ResNet-34, in f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::models::ResNet;
    /// let model = ResNet::new([1, 2, 1, 1], 10)?;
    /// assert_eq!(model.stages().each_ref().map(|stage| stage.blocks().len()), [1, 2, 1, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Sizes whose product overflows.
    pub fn new(blocks: [usize; 4], classes: usize) -> Result<ResNet> {
        let conv1 = conv(COLOURS, WIDTHS[0], 7, 2)?;
        let mut stages: [Stage; 4] = Default::default();
        let mut inputs = WIDTHS[0];
        for (number, (stage, count)) in stages.iter_mut().zip(blocks).enumerate() {
            for block in 0..count {
                // All stages but the first halve height and width.
                let stride = if number > 0 && block == 0 { 2 } else { 1 };
                stage.0.push(BasicBlock::new(inputs, WIDTHS[number], stride)?);
                inputs = WIDTHS[number];
            }
        }
        Ok(ResNet {
            conv1,
            bn1: BatchNorm2d::new(WIDTHS[0])?,
            maxpool: MaxPool2d(MaxPoolOptions::new(3).stride(2).padding(1)),
            stages,
            avgpool: AdaptiveAvgPool2d::new(1),
            fc: Linear::new(inputs, classes)?,
        })
    }

    /// The input of the first stage: `[batch, 64, height / 4, width / 4]`, rounded up.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::models::ResNet};
    /// let model = ResNet::new([1, 1, 1, 1], 10)?;
    /// assert_eq!(model.stem(&Tensor::ones((1, 3, 32, 32))?)?.shape(), [1, 64, 8, 8]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An input that is not `[batch, 3, height, width]`; errors of the backend.
    pub fn stem(&self, images: &Tensor) -> Result<Tensor> {
        let features = forward("bn1", &self.bn1, &forward("conv1", &self.conv1, images)?)?.relu_()?;
        forward("maxpool", &self.maxpool, &features)
    }

    /// The stages, in order of application; their parameters are named `layer1` to `layer4`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Module, models::ResNet};
    /// use keyway::Tensor;
    /// let model = ResNet::new([1, 1, 1, 1], 10)?;
    /// let mut x = model.stem(&Tensor::ones((1, 3, 64, 64))?)?;
    /// for stage in model.stages() {
    ///     x = stage.forward(&x)?;
    /// }
    /// assert_eq!(x.shape(), [1, 512, 2, 2]);
    /// # Ok(()) }
    /// ```
    pub fn stages(&self) -> &[Stage; 4] {
        &self.stages
    }
}

impl Module for ResNet {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let stages = STAGES.into_iter().zip(&self.stages);
        let features = stages.fold(self.stem(input), |value, (name, stage)| forward(name, stage, &value?))?;
        let pooled = forward("avgpool", &self.avgpool, &features)?;
        forward("fc", &self.fc, &pooled.flatten(1, -1)?)
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        visitor.child("conv1", &self.conv1);
        visitor.child("bn1", &self.bn1);
        for (name, stage) in STAGES.into_iter().zip(&self.stages) {
            visitor.child(name, stage);
        }
        visitor.child("fc", &self.fc);
    }
}
