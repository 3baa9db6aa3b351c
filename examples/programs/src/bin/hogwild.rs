//! Hogwild (F. Niu, B. Recht, C. Ré, S. Wright, "Hogwild!", 2011): processes train the same parameters without locks, each with
//! gradients of its own and on its own part of the handwritten digits.
//!
//! The parameters are in memory that processes share. The first process starts the others and passes the names of the memory.

use keyway::data::{DataLoader, Dataset, Digits, Subset};
use keyway::nn::{Linear, Module, Relu, Sequential};
use keyway::optim::{Optimizer, Sgd};
use keyway::prelude::*;
use std::process::Command;

const SIZES: [usize; 3] = [64, 128, 10];

/// A multilayer perceptron of a weight and a bias for each layer.
fn network(parameters: &[Tensor]) -> keyway::Result<Sequential> {
    let mut model = Sequential::new();
    for (layer, pair) in parameters.chunks(2).enumerate() {
        if layer > 0 {
            model = model.push(Relu);
        }
        model = model.push(Linear::from_tensors(pair[0].clone(), Some(pair[1].clone()))?);
    }
    Ok(model)
}

/// Initial parameters in shared memory.
fn initial() -> keyway::Result<Vec<Tensor>> {
    keyway::manual_seed(0);
    let mut parameters = Vec::new();
    for sizes in SIZES.windows(2) {
        for parameter in Linear::new(sizes[0], sizes[1])?.parameters() {
            parameters.push(parameter.to_shared_memory()?);
        }
    }
    Ok(parameters)
}

/// Trains on every `processes`-th image, from image `rank` on.
fn train(parameters: &[Tensor], rank: usize, processes: usize, epochs: u64) -> keyway::Result<()> {
    let (images, _) = Digits::train_test()?;
    let part = Subset::new(&images, (rank..images.len()).step_by(processes).collect::<Vec<_>>())?;
    let loader = DataLoader::new(part, 32)?.shuffle(rank as u64);
    let model = network(parameters)?;
    let mut optimizer = Sgd::new(model.parameters(), 0.2)?;
    for epoch in 0..epochs {
        for batch in loader.epoch(epoch) {
            let batch = batch?;
            optimizer.zero_grad();
            model.forward(&batch.inputs)?.cross_entropy(&batch.targets)?.backward()?;
            optimizer.step()?;
        }
    }
    Ok(())
}

/// The part of the test images that is classified correctly.
fn accuracy(parameters: &[Tensor]) -> keyway::Result<f64> {
    let (_, test) = Digits::train_test()?;
    let _off = no_grad();
    let scores = network(parameters)?.forward(test.inputs())?;
    let right = scores.argmax(1)?.eq(test.targets())?.to_dtype(DType::F64)?.mean_all()?;
    right.item()
}

/// Trains with this many processes, and returns the accuracy.
fn hogwild(processes: usize, epochs: u64) -> Result<f64, Box<dyn std::error::Error>> {
    let parameters = initial()?;
    let names = parameters.iter().map(Tensor::shared_name).collect::<keyway::Result<Vec<_>>>()?;
    let mut members = Vec::new();
    for rank in 0..processes {
        let task = ["member".to_string(), rank.to_string(), processes.to_string(), epochs.to_string()];
        members.push(Command::new(std::env::current_exe()?).args(task).args(&names).spawn()?);
    }
    // All end before an error is returned, so that none is left behind.
    let ends = members.iter_mut().map(|member| member.wait()).collect::<std::io::Result<Vec<_>>>()?;
    if let Some(end) = ends.iter().find(|end| !end.success()) {
        return Err(format!("a process failed: {end}").into());
    }
    Ok(accuracy(&parameters)?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [task, rank, processes, epochs, names @ ..] = arguments.as_slice()
        && task == "member"
    {
        let parameters =
            names.iter().map(|name| Tensor::open_shared(name)).collect::<keyway::Result<Vec<_>>>()?;
        return Ok(train(&parameters, rank.parse()?, processes.parse()?, epochs.parse()?)?);
    }
    let number = |at: usize, default: u64| arguments.get(at).map_or(Ok(default), |text| text.parse());
    let (processes, epochs) = (number(0, 2)?, number(1, 30)?);
    println!("{processes} processes: accuracy {:.4}", hogwild(processes as usize, epochs)?);
    let parameters = initial()?;
    train(&parameters, 0, 1, epochs)?;
    println!("one process: accuracy {:.4}", accuracy(&parameters)?);
    Ok(())
}
