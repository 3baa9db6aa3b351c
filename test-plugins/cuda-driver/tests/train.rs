//! Networks of the kinds that `keyway train digits` trains, a few steps of each on the stand-in: the losses equal those of
//! the CPU, step by step, for any order of a kernel's threads.

mod support;

use keyway::nn::{
    BatchNorm2d, Conv2d, ConvOptions, EmbeddingBag, Flatten, Linear, MaxPool2d, Module, Relu, Sequential,
};
use keyway::ops::index::embedding_bag::BagMode;
use keyway::optim::{
    Adagrad, AdagradOptions, AdamW, AdamWOptions, Optimizer, Sgd, SgdOptions, SparseAdam, SparseAdamOptions,
};
use keyway::rng::manual_seed;
use keyway::{DType, Device, Tensor, runtime};
use support::{built, cuda, run, stand_in};

const BATCH: usize = 16;
const STEPS: usize = 5;
/// Pixels of an image, the values that each may have, and classes.
const PIXELS: usize = 64;
const LEVELS: i64 = 17;
const CLASSES: usize = 10;

fn momentum() -> SgdOptions {
    SgdOptions { lr: 0.05, momentum: 0.9, weight_decay: 1e-4, ..SgdOptions::default() }
}

/// Momentum and weight decay would touch every row of a table.
fn plain() -> SgdOptions {
    SgdOptions { lr: 5.0, ..SgdOptions::default() }
}

/// The scenarios of a started program, not a test by itself.
#[test]
fn scenarios() {
    if support::scenario().is_none() {
        return;
    }
    let paths = ["keyway_backend_cpu", "keyway_backend_cuda", "keyway_backend_sparse"].map(built);
    let loaded = runtime::load_backends(&paths).unwrap();
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
    compare("mlp", mlp, |all| vec![Box::new(Sgd::new(all, momentum()).unwrap())]);
    compare("cnn", cnn, |all| vec![Box::new(Sgd::new(all, momentum()).unwrap())]);
    compare("bag", bag, |all| vec![Box::new(Sgd::new(all, plain()).unwrap())]);
    compare("bag, Adagrad", bag, |all| {
        vec![Box::new(Adagrad::new(all, AdagradOptions { lr: 0.1, ..AdagradOptions::default() }).unwrap())]
    });
    compare("bag, lazy AdamW", bag, |all| {
        let options = AdamWOptions { lr: 0.01, lazy: true, ..AdamWOptions::default() };
        vec![Box::new(AdamW::new(all, options).unwrap())]
    });
    compare("bag, SparseAdam", bag, |mut all| {
        let rest = all.split_off(1);
        let options = SparseAdamOptions { lr: 0.01, ..SparseAdamOptions::default() };
        vec![Box::new(SparseAdam::new(all, options).unwrap()), Box::new(Sgd::new(rest, momentum()).unwrap())]
    });
}

/// With threads in ascending, descending and random order.
#[test]
fn losses_are_those_of_the_cpu() {
    let Some(driver) = stand_in() else { return };
    for seed in ["3", "4", "5"] {
        run("train", &driver, &[("KEYWAY_STAND_IN_SEED", seed)]);
    }
}

fn mlp() -> Sequential {
    let layer = |n, m| Linear::new(n, m).unwrap();
    Sequential::new().push(layer(PIXELS, 32)).push(Relu).push(layer(32, CLASSES))
}

fn cnn() -> Sequential {
    let conv = Conv2d::without_bias(1, 8, 3, ConvOptions::default().padding(1)).unwrap();
    Sequential::new()
        .push(conv)
        .push(BatchNorm2d::new(8).unwrap())
        .push(Relu)
        .push(MaxPool2d::new(2))
        .push(Flatten::default())
        .push(Linear::new(8 * 16, CLASSES).unwrap())
}

fn bag() -> Sequential {
    let table = EmbeddingBag::new(PIXELS * LEVELS as usize, 8).unwrap().mode(BagMode::Mean).sparse(true);
    Sequential::new().push(table).push(Linear::new(8, CLASSES).unwrap())
}

/// Values of pixels from 0 to 16 that depend on the class, and the classes.
fn images(step: usize) -> (Vec<i64>, Vec<i64>) {
    let classes: Vec<i64> = (0..BATCH).map(|image| ((image * 7 + step * 3) % CLASSES) as i64).collect();
    let pixel = |image: usize, at: usize| {
        let noise = (image * 31 + at * 17 + step * 13) as i64 % 5;
        (classes[image] * (at as i64 % 11) + noise) % LEVELS
    };
    (
        (0..BATCH)
            .flat_map(|image| (0..PIXELS).map(move |at| (image, at)))
            .map(|(i, at)| pixel(i, at))
            .collect(),
        classes,
    )
}

/// The losses of some steps on two alternating batches, and the network's output for a batch afterwards.
fn trained(
    net: fn() -> Sequential,
    steps: fn(Vec<Tensor>) -> Vec<Box<dyn Optimizer>>,
    what: &str,
    device: Device,
) -> (Vec<f32>, Vec<f32>) {
    // The same weights on both devices.
    manual_seed(11);
    let net = net();
    net.to_device(device).unwrap();
    let mut optimizers = steps(net.parameters());
    let inputs = |step: usize| {
        let (pixels, classes) = images(step % 2);
        let pixels = Tensor::from_vec(pixels, [BATCH, PIXELS]).unwrap();
        let x = if what.starts_with("bag") {
            let firsts = (0..PIXELS as i64).map(|at| at * LEVELS).collect::<Vec<_>>();
            pixels.add(&Tensor::new(&firsts).unwrap()).unwrap()
        } else {
            let x = pixels.to_dtype(DType::F32).unwrap().div(16.0).unwrap();
            if what == "cnn" { x.reshape([BATCH, 1, 8, 8]).unwrap() } else { x }
        };
        let classes = Tensor::new(&classes).unwrap();
        (x.to_device(device).unwrap(), classes.to_device(device).unwrap())
    };
    let losses = (0..STEPS).map(|step| {
        let (x, classes) = inputs(step);
        optimizers.iter_mut().for_each(|optimizer| optimizer.zero_grad());
        let loss = net.forward(&x).unwrap().cross_entropy(&classes).unwrap();
        loss.backward().unwrap();
        optimizers.iter_mut().for_each(|optimizer| optimizer.step().unwrap());
        loss.item::<f32>().unwrap()
    });
    let losses = losses.collect();
    let said = net.forward(&inputs(STEPS).0).unwrap().detach();
    assert_eq!(said.device(), device);
    (losses, said.to_vec::<f32>().unwrap())
}

#[track_caller]
fn compare(what: &str, net: fn() -> Sequential, steps: fn(Vec<Tensor>) -> Vec<Box<dyn Optimizer>>) {
    let (own, said) = trained(net, steps, what, cuda(0));
    let (expected, wanted) = trained(net, steps, what, Device::CPU);
    for (step, (own, expected)) in own.iter().zip(&expected).enumerate() {
        assert!(
            (own - expected).abs() <= 1e-4 * expected.abs(),
            "{what}, step {step}: {own}, not {expected}"
        );
    }
    assert!(expected[STEPS - 1] < expected[0], "{what} learns nothing: {expected:?}");
    let largest = wanted.iter().fold(1f32, |most, x| most.max(x.abs()));
    for (own, wanted) in said.iter().zip(&wanted) {
        assert!((own - wanted).abs() <= 1e-3 * largest, "{what}: {own}, not {wanted}");
    }
}
