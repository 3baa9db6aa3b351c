//! Training steps.

use criterion::Criterion;
use keyway::Tensor;
use keyway::autograd::no_grad;
use keyway::nn::{Linear, Module, Relu, Sequential, functional::cross_entropy};
use keyway::optim::{Adam, AdamOptions, Optimizer, Sgd, SgdOptions};
use keyway_benches::{case, wanted};

/// The cases.
pub fn cases(c: &mut Criterion) {
    if !wanted("train", "") {
        return;
    }
    let linear = |i, o| Linear::new(i, o).expect("memory");
    let model = Sequential::new()
        .push(linear(784, 512))
        .push(Relu)
        .push(linear(512, 512))
        .push(Relu)
        .push(linear(512, 10));
    let x = Tensor::rand([128, 784]).expect("memory");
    let y = Tensor::randint(0, 10, [128]).expect("memory");
    let forward = 2.0 * 128.0 * (784.0 * 512.0 + 512.0 * 512.0 + 5120.0);
    let step_flop = 2.0 * forward + 2.0 * 128.0 * (512.0 * 512.0 + 5120.0);
    let parameters: Vec<Tensor> = model.parameters();
    let step = |optimizer: &mut dyn Optimizer| {
        optimizer.zero_grad();
        let loss = cross_entropy(&model.forward(&x).expect("forward"), &y).expect("loss");
        loss.backward().expect("backward");
        optimizer.step().expect("step");
    };
    let mut sgd =
        Sgd::new(parameters.clone(), SgdOptions { lr: 1e-3, ..SgdOptions::default() }).expect("sgd");
    case(c, "train.mlp", "flop", step_flop, || step(&mut sgd));
    case(c, "train.mlp_fwd", "flop", forward, || {
        let _off = no_grad();
        model.forward(&x).expect("forward")
    });
    let mut adam = Adam::new(parameters, AdamOptions { lr: 1e-4, ..AdamOptions::default() }).expect("adam");
    case(c, "train.mlp_adam", "flop", step_flop, || step(&mut adam));
}
