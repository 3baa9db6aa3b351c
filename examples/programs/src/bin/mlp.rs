//! A multilayer perceptron by hand: two matrices, a loop, autograd. It is trained on the handwritten digits.

use keyway::data::{DataLoader, Dataset, Digits, digits};
use keyway::prelude::*;

/// `relu(x @ w1 + b1) @ w2 + b2`
struct Mlp {
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
}

impl Mlp {
    fn new(inputs: usize, hidden: usize, outputs: usize) -> keyway::Result<Mlp> {
        let weights = |from: usize, to: usize| {
            // He initialisation, which preserves the variance of the activations (He, 2015).
            (Tensor::randn((from, to))? * (2.0 / from as f64).sqrt())?.requires_grad_(true)
        };
        Ok(Mlp {
            w1: weights(inputs, hidden)?,
            b1: Tensor::zeros(hidden)?.requires_grad_(true)?,
            w2: weights(hidden, outputs)?,
            b2: Tensor::zeros(outputs)?.requires_grad_(true)?,
        })
    }

    fn forward(&self, x: &Tensor) -> keyway::Result<Tensor> {
        let hidden = (x.matmul(&self.w1)? + &self.b1)?.relu()?;
        hidden.matmul(&self.w2)? + &self.b2
    }

    fn parameters(&self) -> [&Tensor; 4] {
        [&self.w1, &self.b1, &self.w2, &self.b2]
    }
}

/// The accuracy on the test images.
fn train(epochs: u64) -> keyway::Result<f64> {
    keyway::manual_seed(0);
    let (train, test) = Digits::train_test()?;
    let model = Mlp::new(digits::PIXELS, 64, 10)?;
    let loader = DataLoader::new(train, 32)?.shuffle(0);
    for epoch in 0..epochs {
        let (mut total, mut batches) = (0.0, 0);
        for batch in loader.epoch(epoch) {
            let batch = batch?;
            let loss = model.forward(&batch.inputs)?.cross_entropy(&batch.targets)?;
            loss.backward()?;
            // The updates are not recorded in the graph.
            let _off = no_grad();
            for parameter in model.parameters() {
                let Some(gradient) = parameter.grad() else { continue };
                parameter.sub_(&(gradient * 0.2)?)?;
                parameter.zero_grad();
            }
            total += loss.item::<f32>()?;
            batches += 1;
        }
        println!("epoch {epoch}: loss {:.3}", total / batches as f32);
    }
    let _off = no_grad();
    let all = test.batch(&(0..test.len()).collect::<Vec<_>>())?;
    let right = model.forward(&all.inputs)?.argmax(1)?.eq(&all.targets)?;
    Ok(f64::from(right.to_dtype(DType::F32)?.mean_all()?.item::<f32>()?))
}

fn main() -> keyway::Result<()> {
    println!("{:.1} % of the test images are right", 100.0 * train(20)?);
    Ok(())
}

#[test]
fn it_learns_the_digits() -> keyway::Result<()> {
    let accuracy = train(10)?;
    assert!(accuracy > 0.85, "{accuracy}");
    Ok(())
}
