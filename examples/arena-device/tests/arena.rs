//! The device, loaded by the real loader: memory, the ops of the tiers up to training, the selected candidates, and training.

mod support;

use keyway::autograd::no_grad;
use keyway::data::digits::{HIGHEST_LABEL, PIXELS};
use keyway::data::{DataLoader, Dataset, Digits};
use keyway::device::{memory_stats, properties, set_memory_limit};
use keyway::dispatcher::explain::explain;
use keyway::dispatcher::registry::{find_op, kernels};
use keyway::io::safetensors;
use keyway::nn::{Linear, Module, Relu, Sequential, StateDict, functional};
use keyway::ops::tiers;
use keyway::optim::lr_scheduler::{CosineAnnealingLr, LrScheduler};
use keyway::optim::{Optimizer, Sgd, SgdOptions};
use keyway::rng::{self, Generator};
use keyway::{DType, Device, Layout, Tensor};
use std::collections::BTreeSet;
use support::{arena, one_at_a_time};

fn ramp(sizes: &[usize]) -> Tensor {
    let numel = sizes.iter().product::<usize>();
    Tensor::from_vec((0..numel).map(|i| i as f32 / 4.0 - 1.0).collect(), sizes).unwrap()
}

fn values(t: &Tensor) -> Vec<f32> {
    t.to_vec().unwrap()
}

#[test]
fn a_small_set_of_kernels_serves_the_tiers_up_to_training() {
    let device = arena();
    for tier in tiers::up_to("train").unwrap() {
        let missing = tiers::missing(tiers::up_to(tier.name).unwrap(), device, DType::F32).unwrap();
        assert_eq!(missing, tiers::Missing::default(), "{}", tier.name);
    }
    let brought: BTreeSet<String> =
        kernels().iter().filter(|k| k.device == device.kind).map(|k| k.op.to_string()).collect();
    assert_eq!(brought.len(), 27, "{brought:?}");
}

#[test]
fn the_readme_shows_who_serves_what() {
    let device = arena();
    for op in ["addmm", "mm", "sort"] {
        let text = explain(find_op(op).unwrap(), device, Layout::STRIDED, DType::F32).to_string();
        assert!(include_str!("../README.md").contains(&text), "the README lacks:\n{text}");
    }
    assert!(explain(find_op("mm").unwrap(), device, Layout::STRIDED, DType::F32).candidates[0].chosen);
}

#[test]
fn tensors_go_there_and_back_and_the_host_cannot_read_them() {
    let _one = one_at_a_time();
    let device = arena();
    let there = ramp(&[3, 4]).to_device(device).unwrap();
    assert!(!properties(device).unwrap().host_accessible);
    assert_eq!(there.device(), device);
    let t = there.t().unwrap().narrow(0, 1, 2).unwrap();
    assert_eq!(values(&t), values(&ramp(&[3, 4]).t().unwrap().narrow(0, 1, 2).unwrap()));
    let text = there.to_string();
    assert!(text.contains("1.75") && text.contains("example.org/arena"), "{text}");
    for dtype in DType::REAL {
        let cast = there.to_dtype(dtype).unwrap();
        assert_eq!(cast.device(), device);
        let expected = ramp(&[3, 4]).to_dtype(dtype).unwrap().to_dtype(DType::F64).unwrap();
        assert_eq!(
            cast.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap(),
            expected.to_vec::<f64>().unwrap(),
            "{dtype}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.safetensors");
    safetensors::save(&path, &StateDict::from_iter([("t".to_string(), there.clone())])).unwrap();
    let loaded = safetensors::load(&path).unwrap();
    let again = loaded["t"].to_device(device).unwrap();
    assert_eq!(values(&again), values(&there));
}

#[test]
fn memory_comes_back_and_is_limited() {
    let _one = one_at_a_time();
    let device = arena();
    let in_use = || memory_stats(device).unwrap().unwrap().in_use;
    let before = in_use();
    let x = ramp(&[64]).to_device(device).unwrap();
    assert_eq!(in_use(), before + 256);
    set_memory_limit(device, before + 512).unwrap();
    let error = Tensor::empty_with(&[1000], device).unwrap_err().to_string();
    assert!(error.contains("out of memory on example.org/arena") && error.contains("256 bytes"), "{error}");
    set_memory_limit(device, 0).unwrap();
    let y = x.exp().unwrap().sum_all().unwrap();
    assert!(y.item::<f32>().unwrap() > 64.0);
    drop((x, y));
    assert_eq!(in_use(), before);
}

#[test]
fn what_nobody_serves_and_what_a_kernel_finds_wrong_are_errors() {
    let _one = one_at_a_time();
    let device = arena();
    let x = ramp(&[2, 3]).to_device(device).unwrap();
    let far = Tensor::from_vec(vec![0i64, 2], &[2, 1]).unwrap().to_device(device).unwrap();
    let error = x.gather(0, &far).unwrap_err().to_string();
    assert!(error.contains("index 2") && error.contains("0..2"), "{error}");
    let error = x.sort(0).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("no kernel for (example.org/arena:0, strided, f32)"), "{error}");
    assert_eq!(values(&x), values(&ramp(&[2, 3])));
}

#[test]
fn random_numbers_are_those_of_every_device() {
    let _one = one_at_a_time();
    let device = arena();
    let drawn = |on: Device| {
        rng::manual_seed(7);
        let [uniform, normal, kept] = [0, 1, 2].map(|_| Tensor::zeros_with(&[3, 5], on).unwrap());
        uniform.uniform_(-1.0, 2.0).unwrap();
        normal.normal_(1.0, 2.0).unwrap();
        let kept = kept.add(1).unwrap().dropout(0.4, true).unwrap();
        [values(&uniform), values(&normal), values(&kept)]
    };
    let (there, here) = (drawn(device), drawn(Device::CPU));
    assert_eq!((&there[0], &there[2]), (&here[0], &here[2]));
    assert!(there[2].contains(&0.0) && there[2].iter().any(|v| *v > 1.6));
    for (a, b) in there[1].iter().zip(&here[1]) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
}

/// The network and the task of `keyway train digits`: the mean loss of each epoch, and the number of correctly classified test
/// rows.
fn train(device: Device, epochs: usize) -> keyway::Result<(Vec<f64>, usize)> {
    let (train, test) = Digits::train_test()?;
    let rows = train.len();
    let loader = DataLoader::new(train, 32)?.shuffle(0);
    let model = rng::with_generator(&Generator::new(0), || {
        Ok::<_, keyway::Error>(
            Sequential::new()
                .push(Linear::new(PIXELS, 128)?)
                .push(Relu)
                .push(Linear::new(128, 64)?)
                .push(Relu)
                .push(Linear::new(64, HIGHEST_LABEL as usize + 1)?),
        )
    })?;
    model.to_device(device)?;
    let options = SgdOptions { lr: 0.1, momentum: 0.9, weight_decay: 1e-3, ..SgdOptions::default() };
    let mut optimizer = Sgd::new(model.parameters(), options)?;
    let mut schedule = CosineAnnealingLr::new(&optimizer, epochs as u64)?;
    let mut losses = Vec::new();
    for epoch in 0..epochs {
        let mut sum = 0.0;
        for batch in loader.epoch(epoch as u64) {
            let batch = batch?;
            let (inputs, targets) = (batch.inputs.to_device(device)?, batch.targets.to_device(device)?);
            optimizer.zero_grad();
            let loss = functional::cross_entropy(&model.forward(&inputs)?, &targets)?;
            loss.backward()?;
            optimizer.step()?;
            sum += f64::from(loss.detach().item::<f32>()?) * inputs.dim(0)? as f64;
        }
        losses.push(sum / rows as f64);
        schedule.step(&mut optimizer)?;
    }
    let _off = no_grad();
    let batch = test.batch(&(0..test.len()).collect::<Vec<_>>())?;
    let (inputs, targets) = (batch.inputs.to_device(device)?, batch.targets.to_device(device)?);
    let right = model.forward(&inputs)?.argmax(-1)?.eq(&targets)?.sum_all()?;
    Ok((losses, right.item::<i64>()? as usize))
}

#[test]
fn the_digits_are_learned_as_on_the_cpu() {
    let _one = one_at_a_time();
    let device = arena();
    let before = memory_stats(device).unwrap().unwrap().in_use;
    let (losses, right) = train(device, 6).unwrap();
    let (on_cpu, right_on_cpu) = train(Device::CPU, 6).unwrap();
    println!("losses {losses:?}, {right} of 360 right; on the CPU {on_cpu:?}, {right_on_cpu}");
    // Sums are rounded in another order, and training amplifies the difference.
    for (a, b) in losses.iter().zip(&on_cpu) {
        assert!((a - b).abs() <= 0.05 * b, "{losses:?} {on_cpu:?}");
    }
    assert!(right >= 320 && right.abs_diff(right_on_cpu) <= 7, "{right}, on the CPU {right_on_cpu}");
    assert_eq!(memory_stats(device).unwrap().unwrap().in_use, before);
}
