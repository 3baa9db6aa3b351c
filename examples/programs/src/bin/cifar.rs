//! A net of three layers for CIFAR-10, two convolutions and a linear one, in `channels_last`.
//!
//! Pass it the folder of the binary version of the data set (A. Krizhevsky, 2009). Without one it generates images: each class
//! has a colour and a direction of stripes, with noise.

use keyway::data::cifar::{self, Cifar};
use keyway::data::{DataLoader, Dataset, ImageDataset};
use keyway::nn::{Conv2d, ConvOptions, Flatten, Linear, MaxPool2d, Module, Relu, Sequential};
use keyway::optim::{AdamW, AdamWOptions, Optimizer};
use keyway::prelude::*;
use keyway::rng::Philox;

fn net() -> keyway::Result<Sequential> {
    let same = ConvOptions { padding: keyway::nn::Padding::Same, ..ConvOptions::default() };
    let half = || MaxPool2d::new(2);
    Ok(Sequential::new()
        .push(Conv2d::new_with(3, 16, 3, same)?)
        .push(Relu)
        .push(half())
        .push(Conv2d::new_with(16, 32, 3, same)?)
        .push(Relu)
        .push(half())
        .push(Flatten::default())
        .push(Linear::new(32 * 8 * 8, 10)?))
}

/// Synthetic images: class `c` is brightest in colour `c % 3`, with direction and width of stripes by `c`.
fn made(count: usize, seed: u64) -> Cifar {
    let mut rng = Philox::new(seed);
    let mut all = Cifar::default();
    for image in 0..count {
        let class = image % 10;
        let [_, rows, columns] = cifar::SHAPE;
        for colour in 0..3 {
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                let along = if class % 2 == 0 { row } else { column };
                let stripe = (along / (2 + class / 3)) % 2 == 0;
                let level = if colour == class % 3 { 150 } else { 70 } + if stripe { 50 } else { 0 };
                all.pixels.push((level + (rng.next_u32() % 56) as usize) as u8);
            }
        }
        all.labels.push(class as u8);
    }
    all
}

fn accuracy(model: &Sequential, data: &ImageDataset) -> keyway::Result<f64> {
    let _off = no_grad();
    let mut right = 0.0;
    for batch in DataLoader::new(data, 250)?.epoch(0) {
        let batch = batch?;
        let found = model.forward(&batch.inputs.to(MemoryFormat::ChannelsLast)?)?.argmax(1)?;
        right += found.eq(&batch.targets)?.to_dtype(DType::F64)?.sum_all()?.item::<f64>()?;
    }
    Ok(right / data.len() as f64)
}

/// The accuracy on the test images.
fn train((train, test): (Cifar, Cifar), epochs: u64) -> keyway::Result<f64> {
    keyway::manual_seed(0);
    let stats = train.channel_stats();
    let (train, test) = (train.normalized(&stats)?, test.normalized(&stats)?);
    let model = net()?;
    model.to_memory_format(MemoryFormat::ChannelsLast)?;
    let mut adam = AdamW::new(model.parameters(), AdamWOptions { lr: 2e-3, ..AdamWOptions::default() })?;
    let loader = DataLoader::new(train, 50)?.shuffle(0);
    for epoch in 0..epochs {
        let mut total = 0.0;
        for batch in loader.epoch(epoch) {
            let batch = batch?;
            adam.zero_grad();
            let scores = model.forward(&batch.inputs.to(MemoryFormat::ChannelsLast)?)?;
            let loss = scores.cross_entropy(&batch.targets)?;
            loss.backward()?;
            adam.step()?;
            total += loss.item::<f32>()?;
        }
        println!("epoch {epoch}: loss {:.3}", total / loader.batches() as f32);
    }
    accuracy(&model, &test)
}

fn main() -> keyway::Result<()> {
    let data = match std::env::args().nth(1) {
        Some(folder) => Cifar::load_folder(folder)?,
        None => {
            println!("no folder given: made images, 10 classes of stripes");
            (made(2_000, 0), made(500, 1))
        }
    };
    println!("{:.1} % of the test images are right", 100.0 * train(data, 5)?);
    Ok(())
}

#[test]
fn it_tells_stripes_apart() -> keyway::Result<()> {
    let accuracy = train((made(300, 0), made(100, 1)), 4)?;
    assert!(accuracy > 0.9, "{accuracy}");
    Ok(())
}
