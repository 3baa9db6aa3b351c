//! ResNet-18: names and shapes of its state, results beside PyTorch's, memory formats, a training.

mod rehearsal_support;

use keyway::nn::models::ResNet;
use keyway::nn::{Activation, BatchNorm2d, Conv2d, ConvAct2d, Linear, Module, StateDict, functional};
use keyway::optim::{Optimizer, Sgd, SgdOptions};
use keyway::rng::{self, Generator};
use keyway::{DType, MemoryFormat, Result, Tensor, autograd, profiler};
use rehearsal_support::load;
use std::collections::BTreeMap;

const BOTH: &[&str] = &["keyway_backend_channels_last"];
const CLASSES: usize = 7;

/// Names and shapes of torchvision's ResNet-18 with this number of classes.
fn torchvision(classes: usize) -> BTreeMap<String, Vec<usize>> {
    let mut state = BTreeMap::new();
    let mut norm = |name: &str, channels: usize| {
        for part in ["weight", "bias", "running_mean", "running_var"] {
            state.insert(format!("{name}.{part}"), vec![channels]);
        }
        state.insert(format!("{name}.num_batches_tracked"), vec![]);
    };
    norm("bn1", 64);
    let mut weights = vec![("conv1".to_string(), vec![64, 3, 7, 7])];
    for (layer, inputs, outputs) in [(1, 64, 64), (2, 64, 128), (3, 128, 256), (4, 256, 512)] {
        for block in 0..2 {
            let first = if block == 0 { inputs } else { outputs };
            let name = |part: &str| format!("layer{layer}.{block}.{part}");
            weights.push((name("conv1"), vec![outputs, first, 3, 3]));
            weights.push((name("conv2"), vec![outputs, outputs, 3, 3]));
            norm(&name("bn1"), outputs);
            norm(&name("bn2"), outputs);
        }
        if layer > 1 {
            let name = |part: usize| format!("layer{layer}.0.downsample.{part}");
            weights.push((name(0), vec![outputs, inputs, 1, 1]));
            norm(&name(1), outputs);
        }
    }
    weights.push(("fc".to_string(), vec![classes, 512]));
    state.extend(weights.into_iter().map(|(name, sizes)| (format!("{name}.weight"), sizes)));
    state.insert("fc.bias".to_string(), vec![classes]);
    state
}

/// The number of an index: a hash, spread over -0.5 to 0.5.
fn number(index: u64, seed: u64) -> f32 {
    let hash = (index + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (hash >> 40) as f32 / (1 << 24) as f32 - 0.5
}

fn numbers(sizes: &[usize], seed: u64, change: impl Fn(f32) -> f32) -> Tensor {
    let count = sizes.iter().product::<usize>() as u64;
    Tensor::from_vec((0..count).map(|i| change(number(i, seed))).collect(), sizes).unwrap()
}

/// A state whose values are computed from names and shapes.
fn state(classes: usize) -> StateDict {
    let mut state = StateDict::new();
    for (k, (name, sizes)) in torchvision(classes).into_iter().enumerate() {
        let seed = 1_000_003 * (k as u64 + 1);
        let tensor = if name.ends_with("num_batches_tracked") {
            Tensor::new(0i64).unwrap()
        } else if name.ends_with("running_var") || (sizes.len() == 1 && name.ends_with("weight")) {
            numbers(&sizes, seed, |v| 1.0 + 0.5 * v)
        } else if sizes.len() > 1 {
            let fan_in = sizes[1..].iter().product::<usize>() as f32;
            numbers(&sizes, seed, |v| v * 24f32.sqrt() / fan_in.sqrt())
        } else {
            numbers(&sizes, seed, |v| 0.2 * v)
        };
        state.insert(name, tensor);
    }
    state
}

fn model(format: MemoryFormat, dtype: DType) -> ResNet {
    let model = ResNet::resnet18(CLASSES).unwrap();
    model.load_state_dict(&state(CLASSES)).unwrap();
    model.to_memory_format(format).unwrap();
    model.to_dtype(dtype).unwrap();
    model
}

fn images(format: MemoryFormat, dtype: DType) -> Tensor {
    let images = numbers(&[2, 3, 40, 32], 77, |v| v);
    images.to(format).unwrap().to_dtype(dtype).unwrap()
}

#[track_caller]
fn assert_near(got: &Tensor, expected: &[f64], tolerance: f64) {
    let got = got.to_vec_f64().unwrap();
    assert_eq!(got.len(), expected.len());
    for (a, b) in got.iter().zip(expected) {
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{got:?}, expected {expected:?}");
    }
}

const FORMATS: [MemoryFormat; 2] = [MemoryFormat::Contiguous, MemoryFormat::ChannelsLast];

#[test]
fn the_state_has_the_names_and_shapes_of_torchvision() {
    let _guard = load(BOTH);
    for (classes, parameters) in [(1_000, 11_689_512), (10, 11_181_642)] {
        let model = ResNet::resnet18(classes).unwrap();
        let sizes = |(name, tensor): (String, Tensor)| (name, tensor.shape().to_vec());
        let state: BTreeMap<_, _> = model.state_dict().into_iter().map(sizes).collect();
        assert_eq!(state, torchvision(classes));
        assert_eq!((state.len(), model.parameters().len(), model.named_buffers().len()), (122, 62, 60));
        assert_eq!(model.num_parameters(), parameters);
    }
    let names: Vec<String> = ResNet::new([1, 0, 1, 0], 3).unwrap().state_dict().into_keys().collect();
    assert!(names.contains(&"layer3.0.downsample.0.weight".to_string()), "{names:?}");
    assert!(names.iter().all(|name| !name.starts_with("layer2") && !name.contains(".1.conv")), "{names:?}");
}

#[test]
fn initial_values_are_those_of_torchvision() {
    let _guard = load(BOTH);
    let drawn =
        |seed| rng::with_generator(&Generator::new(seed), || ResNet::resnet18(10)).unwrap().state_dict();
    let state = drawn(3);
    for (name, tensor) in &state {
        let values = tensor.to_vec_f64().unwrap();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
        match (tensor.rank(), name.rsplit('.').next().unwrap()) {
            (4, _) => {
                let fan_out = (tensor.shape()[0] * tensor.shape()[2] * tensor.shape()[3]) as f64;
                assert!((variance * fan_out / 2.0 - 1.0).abs() < 0.05, "{name}: {variance}");
                assert!(mean.abs() < 4.0 * (variance / values.len() as f64).sqrt(), "{name}: {mean}");
            }
            _ if name.starts_with("fc.") => assert!(values.iter().all(|v| v.abs() <= 1.0 / 512f64.sqrt())),
            (_, "weight" | "running_var") => assert!(values.iter().all(|&v| v == 1.0), "{name}"),
            _ => assert!(values.iter().all(|&v| v == 0.0), "{name}"),
        }
    }
    let (again, other) = (drawn(3), drawn(4));
    let first = |state: &StateDict| state["conv1.weight"].to_vec::<f32>().unwrap();
    assert_eq!(first(&state), first(&again));
    assert_ne!(first(&state), first(&other));
}

// Expected numbers here and below: the same network in PyTorch 2, in f64, with the state above.
#[test]
fn results_in_use_are_those_of_pytorch_in_both_formats() -> Result<()> {
    let _guard = load(BOTH);
    const EXPECTED: [f64; 14] = [
        6.18899, -2.35206, -1.21223, -13.898, 8.99027, -0.160668, 1.98248, 6.13307, -3.64963, -0.941636,
        -13.2797, 8.99848, 1.68105, 2.5032,
    ];
    let _off = autograd::no_grad();
    for format in FORMATS {
        for (dtype, tolerance) in [(DType::F32, 2e-5), (DType::F64, 5e-6), (DType::BF16, 0.15)] {
            let model = model(format, dtype);
            model.eval();
            let scores = model.forward(&images(format, dtype))?;
            assert_eq!((scores.shape(), scores.dtype()), ([2, CLASSES].as_slice(), dtype));
            assert_near(&scores, &EXPECTED, tolerance);
        }
    }
    Ok(())
}

#[test]
fn a_fused_network_gives_the_same_scores_in_both_formats() -> Result<()> {
    let _guard = load(BOTH);
    for (format, dtype) in FORMATS.into_iter().flat_map(|f| [(f, DType::F32), (f, DType::F64)]) {
        let steps = model(format, dtype);
        let fused = steps.fuse()?;
        steps.eval();
        let off = autograd::no_grad();
        let expected = steps.forward(&images(format, dtype))?.to_vec_f64()?;
        drop(off);
        // Only the last layer is recorded.
        let profile = profiler::profile();
        let scores = fused.forward(&images(format, dtype))?;
        assert_near(&scores, &expected, if dtype == DType::F32 { 1e-5 } else { 1e-12 });
        let report = profile.trace().report;
        let calls =
            |op: &str| report.rows.iter().filter(|row| row.op == op).map(|row| row.calls).sum::<u64>();
        assert_eq!((calls("conv_act"), calls("batch_norm")), (20, 0));
        // One call each in both formats: a kernel adds and activates. f64 has none.
        let steps = [calls("conv"), calls("add"), calls("relu")];
        assert_eq!(steps == [0; 3], dtype == DType::F32, "{format} {dtype}: {steps:?}");
        assert!(fused.state_dict().keys().any(|name| name == "layer2.0.downsample.bias"));
        assert_eq!(fused.parameters().len(), 2);
    }
    Ok(())
}

#[test]
fn a_fused_network_in_bf16_is_as_near_as_the_steps() -> Result<()> {
    let _guard = load(BOTH);
    let _off = autograd::no_grad();
    let exact = model(MemoryFormat::ChannelsLast, DType::F32);
    exact.eval();
    let expected = exact.forward(&images(MemoryFormat::ChannelsLast, DType::F32))?.to_vec_f64()?;
    for format in FORMATS {
        let fused = exact.fuse()?;
        fused.to_memory_format(format)?;
        fused.to_dtype(DType::BF16)?;
        assert_near(&fused.forward(&images(format, DType::BF16))?, &expected, 0.15);
    }
    Ok(())
}

#[test]
fn a_norm_that_cannot_be_folded_is_an_error() -> Result<()> {
    let _guard = load(BOTH);
    let conv = Conv2d::new(2, 3, 1)?;
    for (norm, part) in [
        (BatchNorm2d::new(3)?.without_running_stats(), "running_stats"),
        (BatchNorm2d::new(4)?, "4 for 3 channels"),
    ] {
        let error = ConvAct2d::fused(&conv, &norm, Activation::Relu).unwrap_err().to_string();
        assert!(error.contains("BatchNorm2d") && error.contains(part), "{error}");
    }
    Ok(())
}

#[test]
fn a_training_step_is_that_of_pytorch_in_both_formats() -> Result<()> {
    let _guard = load(BOTH);
    const EXPECTED: [f64; 14] = [
        -1.2365, -1.06245, -2.311, -4.16524, -0.0358307, 0.620788, 0.705612, 2.49003, -0.356965, 0.0906501,
        -1.4895, 0.164127, 1.28173, 0.76265,
    ];
    /// Sums of the absolute values.
    const GRADIENTS: [(&str, f64); 5] = [
        ("conv1.weight", 7539.141154654655),
        ("layer2.0.downsample.0.weight", 1529.1222101676735),
        ("layer3.0.conv1.weight", 28470.543033395523),
        ("layer4.1.bn2.weight", 9.737199856498211),
        ("fc.bias", 1.426511792913886),
    ];
    for format in FORMATS {
        let model = model(format, DType::F32);
        let scores = model.forward(&images(format, DType::F32))?;
        assert_near(&scores, &EXPECTED, 1e-4);
        let loss = functional::cross_entropy(&scores, &Tensor::new([2i64, 5])?)?;
        assert_near(&loss, &[2.8985324208871717], 1e-4);
        loss.backward()?;
        let parameters: BTreeMap<_, _> = model.named_parameters().into_iter().collect();
        for (name, expected) in GRADIENTS {
            let grad = parameters[name].grad().unwrap();
            assert_near(&grad.abs()?.sum_all()?, &[expected], 1e-3);
            assert!(grad.rank() < 4 || grad.is_contiguous_in(format), "{name}");
        }
        let state = model.state_dict();
        let three = |name: &str| state[name].narrow(0, 0, 3);
        let mean = [-0.024568539797795816, -0.0372902765635421, 0.010787280657614164];
        assert_near(&three("bn1.running_mean")?, &mean, 1e-5);
        let var = [1.1071177189279549, 1.0243324743060604, 0.8612378144233522];
        assert_near(&three("layer4.1.bn2.running_var")?, &var, 1e-4);
        assert_eq!(state["layer4.1.bn2.num_batches_tracked"].item::<i64>()?, 1);
    }
    Ok(())
}

#[test]
fn each_layer_keeps_the_memory_format() -> Result<()> {
    let _guard = load(BOTH);
    for (format, training) in FORMATS.into_iter().flat_map(|format| [(format, true), (format, false)]) {
        let model = model(format, DType::F32);
        if !training {
            model.eval();
        }
        let mut features = model.stem(&images(format, DType::F32))?;
        let mut sizes = vec![features.shape().to_vec()];
        for stage in model.stages() {
            for block in stage.blocks() {
                assert!(features.is_contiguous_in(format), "{:?} in {format}", features.strides());
                features = block.forward(&features)?;
            }
            sizes.push(features.shape().to_vec());
        }
        assert!(features.is_contiguous_in(format));
        assert_eq!(sizes, [[2, 64, 10, 8], [2, 64, 10, 8], [2, 128, 5, 4], [2, 256, 3, 2], [2, 512, 2, 1]]);
    }
    Ok(())
}

#[test]
fn a_few_steps_lower_the_loss() -> Result<()> {
    let _guard = load(BOTH);
    let model = rng::with_generator(&Generator::new(1), || ResNet::resnet18(CLASSES))?;
    model.to_memory_format(MemoryFormat::ChannelsLast)?;
    let options = SgdOptions { lr: 0.01, momentum: 0.9, ..Default::default() };
    let mut optimizer = Sgd::new(model.parameters(), options)?;
    let images = numbers(&[4, 3, 32, 32], 5, |v| v).to(MemoryFormat::ChannelsLast)?;
    let targets = Tensor::new([0i64, 3, 6, 3])?;
    let mut losses = Vec::new();
    for _ in 0..4 {
        optimizer.zero_grad();
        let loss = functional::cross_entropy(&model.forward(&images)?, &targets)?;
        losses.push(loss.detach().item::<f32>()?);
        loss.backward()?;
        optimizer.step()?;
    }
    assert!(losses[3] < 0.5 * losses[0], "{losses:?}");
    Ok(())
}

#[test]
fn what_does_not_fit_is_an_error() -> Result<()> {
    let _guard = load(BOTH);
    let model = ResNet::resnet18(CLASSES)?;
    let error = model.load_state_dict(&state(5)).unwrap_err().to_string();
    assert!(error.contains("fc.weight (expected [7, 512], got [5, 512])"), "{error}");
    let other = Linear::new(3, 2)?;
    let error = model.load_state_dict(&other.state_dict()).unwrap_err().to_string();
    assert!(error.contains("122 missing: bn1.bias"), "{error}");
    for sizes in [[1, 1, 32, 32].as_slice(), &[3, 32], &[1, 4, 32, 32]] {
        let error = model.forward(&numbers(sizes, 0, |v| v)).unwrap_err().to_string();
        assert!(error.contains("conv"), "{error}");
    }
    Ok(())
}
