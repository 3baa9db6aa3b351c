//! Images: convolutions, pooling, norms of channels, a step of a small net and a pass of ResNet-18, in row-major order (`nchw`)
//! and channels_last (`nhwc`), in f32 and bf16. Sizes and names are those that other libraries' benchmarks use.

use criterion::Criterion;
use keyway::autograd::{BackwardOptions, grad, no_grad};
use keyway::nn::models::ResNet;
use keyway::nn::{Conv2d, Flatten, Linear, MaxPool2d, Module, Relu, Sequential, functional::cross_entropy};
use keyway::ops::conv::ConvOptions;
use keyway::ops::pool::MaxPoolOptions;
use keyway::optim::{Optimizer, Sgd, SgdOptions};
use keyway::{DType, MemoryFormat, Result, Tensor};
use keyway_benches::{case, named};

/// The cases.
pub fn cases(c: &mut Criterion) {
    for (order, format) in [("nchw", MemoryFormat::Contiguous), ("nhwc", MemoryFormat::ChannelsLast)] {
        for (width, dtype) in [("f32", DType::F32), ("bf16", DType::BF16)] {
            let kind = Kind { name: format!("{order}_{width}"), dtype, format };
            convolutions(c, &kind).expect("convolutions");
            pooling(c, &kind).expect("pooling");
            norms(c, &kind).expect("norms");
            resnet(c, &kind).expect("a pass");
        }
        step(c, order, format).expect("a step");
    }
}

/// The dtype and memory format of a case's images, and the suffix of its name.
struct Kind {
    name: String,
    dtype: DType,
    format: MemoryFormat,
}

impl Kind {
    fn images(&self, shape: [usize; 4]) -> Result<Tensor> {
        Tensor::randn(shape)?.to((self.dtype, self.format))
    }

    /// The name of a case, if the filter on the command line selects it.
    fn case(&self, op: &str, pass: &str) -> Option<String> {
        let name = format!("{op}_{}{pass}", self.name);
        named(&name).then_some(name)
    }
}

/// A leaf with the same values.
fn leaf(tensor: &Tensor) -> Result<Tensor> {
    tensor.copy()?.requires_grad_(true)
}

/// The gradients of `inputs` after a forward pass by `run`.
fn both_ways(
    run: impl Fn() -> Result<Tensor>,
    inputs: &[Tensor],
    given: &Tensor,
) -> Result<Vec<Option<Tensor>>> {
    grad(&[run()?], inputs, BackwardOptions::from(given))
}

/// A convolution of square images with square kernels.
struct Conv {
    name: &'static str,
    batch: usize,
    channels: usize,
    side: usize,
    outputs: usize,
    kernel: usize,
    stride: usize,
    padding: usize,
    groups: usize,
    /// Whether the images require grad.
    gradient: bool,
}

#[rustfmt::skip]
const CONVOLUTIONS: [Conv; 4] = [
    Conv { name: "3x3", batch: 8, channels: 64, side: 56, outputs: 64, kernel: 3, stride: 1, padding: 1, groups: 1, gradient: true },
    Conv { name: "1x1", batch: 8, channels: 256, side: 56, outputs: 64, kernel: 1, stride: 1, padding: 0, groups: 1, gradient: true },
    Conv { name: "dw3x3", batch: 8, channels: 128, side: 56, outputs: 128, kernel: 3, stride: 1, padding: 1, groups: 128, gradient: true },
    Conv { name: "stem7x7", batch: 8, channels: 3, side: 224, outputs: 64, kernel: 7, stride: 2, padding: 3, groups: 1, gradient: false },
];

fn convolutions(c: &mut Criterion, kind: &Kind) -> Result<()> {
    for conv in &CONVOLUTIONS {
        let op = format!("conv.{}", conv.name);
        let (forward, backward) = (kind.case(&op, "_fwd"), kind.case(&op, "_fwdbwd"));
        if forward.is_none() && backward.is_none() {
            continue;
        }
        let x = kind.images([conv.batch, conv.channels, conv.side, conv.side])?;
        let fan = conv.channels / conv.groups;
        let weight = kind.images([conv.outputs, fan, conv.kernel, conv.kernel])?.mul(0.1)?;
        let bias = Tensor::randn([conv.outputs])?.to_dtype(kind.dtype)?;
        let options =
            ConvOptions::<2>::default().stride(conv.stride).padding(conv.padding).groups(conv.groups);
        let places = ((conv.side + 2 * conv.padding - conv.kernel) / conv.stride + 1).pow(2);
        let flop = (2 * conv.batch * places * conv.outputs * fan * conv.kernel.pow(2)) as f64;
        let run = |x: &Tensor, weight: &Tensor, bias: &Tensor| x.conv2d_with(weight, Some(bias), options);
        let given = {
            let _off = no_grad();
            if let Some(name) = forward {
                case(c, &name, "flop", flop, || run(&x, &weight, &bias).expect("memory"));
            }
            Tensor::randn_like(&run(&x, &weight, &bias)?)?
        };
        if let Some(name) = backward {
            let x = leaf(&x)?.requires_grad_(conv.gradient)?;
            let (weight, bias) = (leaf(&weight)?, leaf(&bias)?);
            let all = [x.clone(), weight.clone(), bias.clone()];
            let inputs = if conv.gradient { &all[..] } else { &all[1..] };
            let passes = inputs.len() as f64;
            case(c, &name, "flop", passes * flop, || {
                both_ways(|| run(&x, &weight, &bias), inputs, &given).expect("backward")
            });
        }
    }
    Ok(())
}

fn pooling(c: &mut Criterion, kind: &Kind) -> Result<()> {
    let (forward, backward) = (kind.case("pool.max3x3s2", "_fwd"), kind.case("pool.max3x3s2", "_fwdbwd"));
    if forward.is_none() && backward.is_none() {
        return Ok(());
    }
    let x = kind.images([8, 64, 112, 112])?;
    let bytes = (x.elem_count() * kind.dtype.size() * 5 / 4) as f64;
    let options = MaxPoolOptions::new(3).stride(2).padding(1);
    if let Some(name) = forward {
        case(c, &name, "byte", bytes, || x.max_pool2d(options).expect("memory"));
    }
    if let Some(name) = backward {
        let given = Tensor::randn_like(&x.max_pool2d(options)?)?;
        let x = leaf(&x)?;
        let inputs = [x.clone()];
        case(c, &name, "byte", 2.0 * bytes, || {
            both_ways(|| x.max_pool2d(options), &inputs, &given).expect("backward")
        });
    }
    Ok(())
}

fn norms(c: &mut Criterion, kind: &Kind) -> Result<()> {
    let [eval, forward, backward] = [("eval", "_fwd"), ("train", "_fwd"), ("train", "_fwdbwd")]
        .map(|(mode, pass)| kind.case(&format!("bn.{mode}"), pass));
    if eval.is_none() && forward.is_none() && backward.is_none() {
        return Ok(());
    }
    let x = kind.images([8, 64, 56, 56])?;
    let bytes = (x.elem_count() * kind.dtype.size()) as f64;
    // Weights and statistics are f32, even for images in bf16.
    let [weight, bias] = [Tensor::rand([64])?, Tensor::rand([64])?];
    let (mean, var) = (Tensor::zeros([64])?, Tensor::ones([64])?);
    let run = |x: &Tensor, weight: &Tensor, bias: &Tensor, training: bool| {
        x.batch_norm(Some((&mean, &var)), Some(weight), Some(bias), training, 0.1, 1e-5)
    };
    {
        let _off = no_grad();
        for (name, training) in [(eval, false), (forward, true)] {
            if let Some(name) = name {
                case(c, &name, "byte", 2.0 * bytes, || run(&x, &weight, &bias, training).expect("memory"));
            }
        }
    }
    if let Some(name) = backward {
        let (x, weight, bias) = (leaf(&x)?, leaf(&weight)?, leaf(&bias)?);
        let given = Tensor::randn_like(&run(&x, &weight, &bias, true)?.detach())?;
        let inputs = [x.clone(), weight.clone(), bias.clone()];
        case(c, &name, "byte", 5.0 * bytes, || {
            both_ways(|| run(&x, &weight, &bias, true), &inputs, &given).expect("backward")
        });
    }
    Ok(())
}

/// A pass over one image, without a graph.
fn resnet(c: &mut Criterion, kind: &Kind) -> Result<()> {
    let Some(name) = kind.case("infer.resnet18_b1", "") else {
        return Ok(());
    };
    let model = ResNet::resnet18(1000)?;
    model.to_dtype(kind.dtype)?;
    model.to_memory_format(kind.format)?;
    model.eval();
    let x = kind.images([1, 3, 224, 224])?;
    let _off = no_grad();
    case(c, &name, "flop", 2.0 * 1_814_073_344.0, || model.forward(&x).expect("forward"));
    Ok(())
}

/// A step of a small net on 64 images of one channel.
fn step(c: &mut Criterion, order: &str, format: MemoryFormat) -> Result<()> {
    let name = format!("train.cnn_{order}");
    if !named(&name) {
        return Ok(());
    }
    let conv = |inputs, outputs| Conv2d::new_with(inputs, outputs, 3, ConvOptions::default().padding(1));
    let halved = || MaxPool2d(MaxPoolOptions::new(2));
    let model = Sequential::new()
        .push(conv(1, 32)?)
        .push(Relu)
        .push(halved())
        .push(conv(32, 64)?)
        .push(Relu)
        .push(halved())
        .push(Flatten::default())
        .push(Linear::new(64 * 49, 128)?)
        .push(Relu)
        .push(Linear::new(128, 10)?);
    model.to_memory_format(format)?;
    let x = Tensor::rand([64, 1, 28, 28])?.to(format)?;
    let y = Tensor::randint(0, 10, [64])?;
    let mut sgd = Sgd::new(model.parameters(), SgdOptions { lr: 1e-3, ..SgdOptions::default() })?;
    let [first, second] = [784.0 * 32.0 * 9.0, 196.0 * 64.0 * 32.0 * 9.0].map(|each| 2.0 * 64.0 * each);
    let last = 2.0 * 64.0 * (3136.0 * 128.0 + 1280.0);
    case(c, &name, "flop", 2.0 * first + 3.0 * second + 3.0 * last, || {
        sgd.zero_grad();
        let loss = cross_entropy(&model.forward(&x).expect("forward"), &y).expect("loss");
        loss.backward().expect("backward");
        sgd.step().expect("step");
    });
    Ok(())
}
