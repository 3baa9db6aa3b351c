//! Layers and models.

use crate::values;
use keyway::nn::{self, *};
use keyway::prelude::*;

#[test]
fn sequences() -> keyway::Result<()> {
    let x = Tensor::randn((2, 3))?;
    let model = Sequential::new().add(Linear::new(3, 4)?).add(Relu).add_fn(|x| x.mul(2.0));
    assert_eq!(model.forward(&x)?.shape(), [2, 4]);
    let layers: Vec<Box<dyn Module>> =
        vec![Box::new(Linear::new(3, 4)?), Box::new(Relu::new()), Box::new(Dropout::new(0.5)?)];
    let model = Sequential::from(layers);
    assert_eq!((model.len(), model[1].type_name(), model.num_parameters()), (3, "Relu", 16));
    assert!(model.state_dict().keys().eq(["0.bias", "0.weight"]));
    let model = Sequential::from((Linear::new(3, 4)?, nn::ReLU, Linear::new(4, 2)?));
    assert_eq!(model.forward(&x)?.shape(), [2, 2]);
    let model: Sequential = (0..3).map(|_| Linear::new(3, 3)).collect::<keyway::Result<_>>()?;
    assert_eq!(model.forward(&x)?.shape(), [2, 3]);
    assert_eq!(Sequential::from([Relu, Relu]).len(), 2);
    assert_eq!(nn::seq().add(Relu).add(nn::Tanh).len(), 2);
    let mean = Func::new(|x| x.mean(1));
    assert_eq!(mean.forward(&x)?.shape(), [2]);
    Ok(())
}

#[test]
fn layers_without_parameters_cannot_fail() -> keyway::Result<()> {
    let x = Tensor::new([[-1.0f32, 2.0]])?;
    assert_eq!(values(Relu::new().forward(&x)), [0.0, 2.0]);
    assert_eq!(values(LeakyRelu::new(0.5).forward(&x)), [-0.5, 2.0]);
    assert_eq!(values(Gelu::new().forward(&x)), values(x.gelu()));
    assert_eq!(values(nn::GELU::new().forward(&x)), values(x.gelu()));
    assert_eq!(values(Silu::new().forward(&x)), values(nn::SiLU.forward(&x)));
    assert_eq!(values(Sigmoid::new().forward(&x)), values(x.sigmoid()));
    assert_eq!(values(Tanh::new().forward(&x)), values(x.tanh()));
    assert_eq!(values(Elu::new(1.0).forward(&x)), values(x.elu()));
    assert_eq!(values(Softmax::new(1).forward(&x)), values(x.softmax(1)));
    assert_eq!(values(LogSoftmax::new(-1).forward(&x)), values(x.log_softmax(1)));
    assert_eq!(values(Hardtanh::new(0.0, 1.0).forward(&x)), [0.0, 1.0]);
    assert_eq!(values(Softplus::new(1.0, 20.0).forward(&x)), values(x.softplus()));
    assert_eq!(values(Identity::new().forward(&x)), [-1.0, 2.0]);
    let image = Tensor::ones((1, 4, 4, 4))?;
    assert_eq!(Flatten::new().forward(&image)?.shape(), [1, 64]);
    assert_eq!(PixelShuffle::new(2).forward(&image)?.shape(), [1, 1, 8, 8]);
    assert_eq!(MaxPool2d::new(2).forward(&image)?.shape(), [1, 4, 2, 2]);
    assert_eq!(MaxPool2d::new((2, 2)).forward(&image)?.shape(), [1, 4, 2, 2]);
    assert_eq!(MaxPool2d::new(MaxPoolOptions::new(2).stride(1)).forward(&image)?.shape(), [1, 4, 3, 3]);
    assert_eq!(AvgPool2d::new(AvgPoolOptions::new(3).padding(1)).forward(&image)?.shape(), [1, 4, 2, 2]);
    assert_eq!(AdaptiveAvgPool2d::new(1).forward(&image)?.shape(), [1, 4, 1, 1]);
    assert_eq!(Upsample::new(InterpolateOptions::scale(2.0)).forward(&image)?.shape(), [1, 4, 8, 8]);
    assert_eq!(InstanceNorm2d::new(4).forward(&image)?.shape(), [1, 4, 4, 4]);
    Ok(())
}

#[test]
fn weights_and_biases() -> keyway::Result<()> {
    let linear = Linear::new(3, 2)?;
    assert_eq!((linear.weight().shape(), linear.bias().unwrap().shape()), (&[2, 3][..], &[2][..]));
    let conv = Conv2d::new(3, 8, (3, 3))?;
    assert_eq!((conv.weight().shape(), conv.bias().unwrap().shape()), (&[8, 3, 3, 3][..], &[8][..]));
    let norm = BatchNorm2d::new(4)?;
    assert_eq!(
        (values(Ok(norm.weight().unwrap())), values(Ok(norm.bias().unwrap()))),
        (vec![1.0; 4], vec![0.0; 4])
    );
    assert_eq!(values(Ok(norm.running_mean().unwrap())), [0.0; 4]);
    assert_eq!(values(Ok(norm.running_var().unwrap())), [1.0; 4]);
    assert!(norm.weight().unwrap().ptr_eq(&norm.get_parameter("weight")?));
    norm.forward(&Tensor::randn((2, 4, 3, 3))?)?;
    assert_eq!(norm.num_batches_tracked().unwrap().item::<i64>()?, 1);
    assert!(BatchNorm2d::new(4)?.without_running_stats().running_mean().is_none());
    assert!(InstanceNorm1d::new(4).weight().is_none());
    assert_eq!(LayerNorm::new(4)?.weight().unwrap().shape(), [4]);
    assert!(LayerNorm::new(4)?.without_bias().bias().is_none());
    assert_eq!(GroupNorm::new(2, 4)?.bias().unwrap().shape(), [4]);
    assert_eq!(nn::RMSNorm::new(4)?.weight().unwrap().shape(), [4]);
    assert_eq!(Embedding::new(10, 4)?.weight().shape(), [10, 4]);
    assert_eq!(nn::PReLU::new()?.weight().shape(), [1]);
    let attention = MultiheadAttention::new(4, 2)?;
    assert_eq!(attention.in_proj_weight().unwrap().shape(), [12, 4]);
    assert_eq!(attention.out_proj().weight().shape(), [4, 4]);
    Ok(())
}

#[test]
fn losses() -> keyway::Result<()> {
    let (scores, target) = (Tensor::new([[2.0f32, 0.0]])?, Tensor::new([0i64])?);
    let loss = CrossEntropyLoss::new().forward(&scores, &target)?.item::<f32>()?;
    assert_eq!(loss, scores.cross_entropy(&target)?.item::<f32>()?);
    let smooth = CrossEntropyLoss::new().label_smoothing(0.1).reduction(Reduction::Sum);
    assert!(smooth.forward(&scores, &target)?.item::<f32>()? > loss);
    let (a, b) = (Tensor::new([1.0f32, 2.0])?, Tensor::new([3.0f32, 2.0])?);
    assert_eq!(MseLoss::new().forward(&a, &b)?.item::<f32>()?, 2.0);
    assert_eq!(nn::MSELoss::new().reduction(Reduction::Sum).forward(&a, &b)?.item::<f32>()?, 4.0);
    assert_eq!(L1Loss::new().reduction(Reduction::None).forward(&a, &b)?.shape(), [2]);
    assert_eq!(HuberLoss::new().delta(0.5).forward(&a, &b)?.item::<f32>()?, 0.4375);
    let weighted = nn::BCEWithLogitsLoss::new().pos_weight(Tensor::new(2.0f32)?);
    assert!(weighted.forward(&a, &Tensor::ones(2)?)?.item::<f32>()? > 0.0);
    Ok(())
}

#[test]
fn frozen_parts() -> keyway::Result<()> {
    let model = Sequential::new().add(Linear::new(3, 4)?).add(Linear::new(4, 2)?);
    model[0].requires_grad_(false)?;
    assert_eq!(model.parameters().iter().filter(|p| p.requires_grad()).count(), 2);
    model.requires_grad_(true)?;
    assert!(model.parameters().iter().all(Tensor::requires_grad));
    Ok(())
}
