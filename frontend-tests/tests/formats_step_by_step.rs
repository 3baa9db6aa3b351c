//! A training in both memory formats, each step from the same state: losses and gradients differ by what the order of sums of
//! f32 makes. Over many steps each from its own state they may drift apart, as any two trainings that are rounded differently.

mod rehearsal_support;

use keyway::data::Digits;
use keyway::nn::{
    BatchNorm2d, Conv2d, ConvOptions, Dropout, Flatten, Linear, MaxPool2d, Module, Relu, Sequential,
};
use keyway::optim::{Optimizer, Sgd, SgdOptions};
use keyway::rng::{self, Generator};
use keyway::{MemoryFormat, Result, Tensor};
use rehearsal_support::load;

const BATCH: usize = 32;
const CHANNELS: [usize; 3] = [1, 16, 32];
const HIDDEN: usize = 64;
const SIDE: usize = 8;
const STEPS: usize = 20;

/// Terms of the sums on the way through the net: two convolutions, the two norms' statistics, and two layers. The way back has
/// as many, and a gradient of a weight sums over all pixels of the batch.
const TERMS: [usize; 7] = [
    9 * CHANNELS[0],
    9 * CHANNELS[1],
    BATCH * SIDE * SIDE,
    BATCH * SIDE * SIDE,
    CHANNELS[2] * SIDE * SIDE / 4,
    HIDDEN,
    BATCH * SIDE * SIDE,
];

/// The maximum relative difference of two results: rounding to f32 has an error of at most half of epsilon, n independent
/// roundings about the square root of n times that (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, 2.6),
/// and the errors of successive layers add up. Both results have this error, and twice the bound is still likely.
fn tolerance() -> f64 {
    let way: f64 = TERMS.iter().map(|&n| (n as f64).sqrt()).sum();
    2.0 * 2.0 * f64::from(f32::EPSILON) / 2.0 * 2.0 * way
}

fn net() -> Result<Sequential> {
    let options = || ConvOptions::default().padding(1);
    let [first, second, third] = CHANNELS;
    Ok(Sequential::new()
        .push(Conv2d::without_bias(first, second, 3, options())?)
        .push(BatchNorm2d::new(second)?)
        .push(Relu)
        .push(Conv2d::without_bias(second, third, 3, options())?)
        .push(BatchNorm2d::new(third)?)
        .push(Relu)
        .push(MaxPool2d::new(2))
        .push(Dropout::new(0.25)?)
        .push(Conv2d::new(third, HIDDEN, SIDE / 2)?)
        .push(Flatten::default())
        .push(Relu)
        .push(Dropout::new(0.5)?)
        .push(Linear::new(HIDDEN, 10)?))
}

/// The loss and the gradient of each parameter.
fn run(model: &Sequential, x: &Tensor, target: &Tensor, step: usize) -> Result<(f64, Vec<Vec<f64>>)> {
    model.zero_grad();
    let loss = rng::with_generator(&Generator::new(step as u64), || model.forward(x)?.cross_entropy(target))?;
    loss.backward()?;
    let grads = model.parameters().into_iter().map(|p| p.grad().expect("each is used").to_vec_f64());
    Ok((loss.detach().to_vec_f64()?[0], grads.collect::<Result<_>>()?))
}

fn size(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|v| v * v).sum::<f64>().sqrt()
}

#[test]
fn from_the_same_state_losses_and_gradients_are_the_same_to_rounding() -> Result<()> {
    let _guard = load(&["keyway_backend_channels_last"]);
    let (data, _) = Digits::train_test()?;
    let [rows, last] = [(); 2].map(|()| rng::with_generator(&Generator::new(1), net));
    let (rows, last) = (rows?, last?);
    last.to_memory_format(MemoryFormat::ChannelsLast)?;
    let mut optimizer =
        Sgd::new(rows.parameters(), SgdOptions { lr: 0.02, momentum: 0.9, ..SgdOptions::default() })?;
    let within = tolerance();
    let (mut losses, mut jumps) = (Vec::new(), 0);
    for step in 0..STEPS {
        last.load_state_dict(&rows.state_dict())?;
        let first = (step * BATCH) as i64;
        let x = data.inputs().narrow(0, first, BATCH)?.reshape((BATCH, 1, SIDE, SIDE))?;
        let target = data.targets().narrow(0, first, BATCH)?;
        let (loss, grads) = run(&rows, &x, &target, step)?;
        let (other, others) = run(&last, &x.to(MemoryFormat::ChannelsLast)?, &target, step)?;
        assert!((loss - other).abs() <= within * loss, "step {step}: losses {loss} and {other}");
        let apart = grads.iter().zip(&others).map(|(a, b)| {
            size(a.iter().zip(b).map(|(a, b)| a - b)) / size(a.iter().copied()).max(f64::MIN_POSITIVE)
        });
        let most = apart.fold(0.0, f64::max);
        // An activation that rounding takes to the other side of 0, or of its neighbour under a window, changes the gradient by
        // its own share: of some hundred pixels of a channel one.
        assert!(most < 0.1, "step {step}: gradients are {most} of their size apart");
        jumps += usize::from(most > within);
        losses.push(loss);
        optimizer.step()?;
    }
    assert!(
        jumps <= STEPS / 4,
        "in {jumps} of {STEPS} steps gradients are more than {within} of their size apart"
    );
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
    assert!(mean(&losses[STEPS - 5..]) < 0.9 * mean(&losses[..5]), "it learns: {losses:?}");
    Ok(())
}
