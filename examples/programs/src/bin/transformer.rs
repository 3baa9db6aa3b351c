//! A small transformer over bytes that learns a text and continues it (A. Vaswani and others, "Attention is all you need",
//! 2017; with the norms before attention and feed-forward net).

use keyway::nn::{
    AttentionOptions, Embedding, KvCache, LayerNorm, Linear, Module, ModuleVisitor, MultiheadAttention,
};
use keyway::optim::lr_scheduler::{CosineAnnealingLr, LrScheduler};
use keyway::optim::{AdamW, AdamWOptions, Optimizer, clip_grad_norm_};
use keyway::prelude::*;
#[cfg(test)]
use keyway::rng::{self, Generator};
use keyway::{Result, autocast::autocast};

const TEXT: &str = "the key turns in the lock and the door opens to the hall, ";
const WIDTH: usize = 32;
/// Context length of the training.
const CONTEXT: usize = 96;

struct Block {
    norm1: LayerNorm,
    attention: MultiheadAttention,
    norm2: LayerNorm,
    up: Linear,
    down: Linear,
}

impl Block {
    fn new() -> Result<Block> {
        Ok(Block {
            norm1: LayerNorm::new(WIDTH)?,
            attention: MultiheadAttention::new(WIDTH, 4)?,
            norm2: LayerNorm::new(WIDTH)?,
            up: Linear::new(WIDTH, 4 * WIDTH)?,
            down: Linear::new(4 * WIDTH, WIDTH)?,
        })
    }

    /// With a cache, for positions that follow the cached ones.
    fn run(&self, x: &Tensor, cache: Option<&mut KvCache>) -> Result<Tensor> {
        let normed = self.norm1.forward(x)?;
        let gathered = match cache {
            Some(cache) => self.attention.forward_cached(&normed, cache)?,
            None => {
                let causal = AttentionOptions { is_causal: true, ..AttentionOptions::default() };
                self.attention.forward_qkv(&normed, &normed, &normed, causal)?
            }
        };
        let x = (x + gathered)?;
        let hidden = self.up.forward(&self.norm2.forward(&x)?)?.gelu()?;
        x + self.down.forward(&hidden)?
    }
}

impl Module for Block {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.run(x, None)
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        visitor.child("norm1", &self.norm1);
        visitor.child("attention", &self.attention);
        visitor.child("norm2", &self.norm2);
        visitor.child("up", &self.up);
        visitor.child("down", &self.down);
    }
}

struct Transformer {
    bytes: Embedding,
    blocks: [Block; 2],
    norm: LayerNorm,
    head: Linear,
}

impl Transformer {
    fn new() -> Result<Transformer> {
        Ok(Transformer {
            bytes: Embedding::new(256, WIDTH)?,
            blocks: [Block::new()?, Block::new()?],
            norm: LayerNorm::new(WIDTH)?,
            head: Linear::new(WIDTH, 256)?,
        })
    }

    /// The logits of the next byte at each position, `[batch, length, 256]`, for bytes `[batch, length]`.
    fn scores(&self, bytes: &Tensor, mut caches: Option<&mut [KvCache; 2]>) -> Result<Tensor> {
        let begin = caches.as_ref().map_or(0, |caches| caches[0].len()) as i64;
        let mut x = (self.bytes.forward(bytes)? + places(begin, bytes.dim(1)?)?)?;
        for (i, block) in self.blocks.iter().enumerate() {
            x = block.run(&x, caches.as_mut().map(|caches| &mut caches[i]))?;
        }
        self.head.forward(&self.norm.forward(&x)?)
    }
}

/// Sinusoidal positional encodings, `[count, WIDTH]`.
fn places(begin: i64, count: usize) -> Result<Tensor> {
    let place = Tensor::arange(begin, begin + count as i64)?.to_dtype(DType::F32)?.unsqueeze(1)?;
    let half = WIDTH / 2;
    let frequency =
        (Tensor::arange(0, half as i64)?.to_dtype(DType::F32)? * (-(1e4f64.ln()) / half as f64))?.exp()?;
    let angle = (place * frequency)?;
    Tensor::cat(&[&angle.sin()?, &angle.cos()?], 1)
}

impl Module for Transformer {
    fn forward(&self, bytes: &Tensor) -> Result<Tensor> {
        self.scores(bytes, None)
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        visitor.child("bytes", &self.bytes);
        for (i, block) in self.blocks.iter().enumerate() {
            visitor.child(&format!("blocks.{i}"), block);
        }
        visitor.child("norm", &self.norm);
        visitor.child("head", &self.head);
    }
}

/// Trains on pieces of the text; returns the last loss.
fn train(model: &Transformer, steps: usize, low: Option<DType>) -> Result<f32> {
    let text: Vec<i64> = TEXT.bytes().map(i64::from).collect();
    let text = Tensor::new(text.repeat(3))?;
    let length = TEXT.len();
    let mut adam = AdamW::new(model.parameters(), AdamWOptions { lr: 1e-2, ..AdamWOptions::default() })?;
    // The learning rate decays to 0.
    let mut schedule = CosineAnnealingLr::new(&adam, steps as u64)?;
    let mut last = f32::INFINITY;
    for step in 0..steps {
        // Four pieces with different offsets.
        let pieces: Vec<Tensor> = (0..4)
            .map(|i| text.narrow(0, ((step * 37 + i * 29) % length) as i64, CONTEXT + 1))
            .collect::<Result<_>>()?;
        let pieces = Tensor::stack(&pieces, 0)?;
        let loss = {
            let _guard = low.map(autocast).transpose()?;
            let scores = model.forward(&pieces.narrow(1, 0, CONTEXT)?)?;
            scores.flatten_to(1)?.cross_entropy(&pieces.narrow(1, 1, CONTEXT)?.flatten_all()?)?
        };
        adam.zero_grad();
        loss.backward()?;
        clip_grad_norm_(&model.parameters(), 1.0)?;
        adam.step()?;
        schedule.step(&mut adam)?;
        last = loss.item::<f32>()?;
        if step % 50 == 49 {
            println!("step {}: loss {last:.3}", step + 1);
        }
    }
    Ok(last)
}

/// Continues a text greedily, with the most likely byte.
fn generate(model: &Transformer, begin: &str, count: usize) -> Result<String> {
    let _off = no_grad();
    let mut caches = [KvCache::new(), KvCache::new()];
    let mut made = begin.as_bytes().to_vec();
    let mut next: Vec<i64> = begin.bytes().map(i64::from).collect();
    for _ in 0..count {
        let scores = model.scores(&Tensor::new(next.as_slice())?.unsqueeze(0)?, Some(&mut caches))?;
        let byte = scores.i((0, -1, ..))?.argmax_all()?.item::<i64>()?;
        made.push(byte as u8);
        next = vec![byte];
    }
    Ok(String::from_utf8_lossy(&made).into_owned())
}

fn main() -> Result<()> {
    let low = std::env::args().any(|arg| arg == "--bf16").then_some(DType::BF16);
    keyway::manual_seed(0);
    let model = Transformer::new()?;
    train(&model, 300, low)?;
    println!("{}", generate(&model, "the key", 80)?);
    Ok(())
}

#[test]
fn it_learns_the_text_and_goes_on_with_it() -> Result<()> {
    let model = rng::with_generator(&Generator::new(0), Transformer::new)?;
    let loss = train(&model, 300, None)?;
    assert!(loss < 0.3, "{loss}");
    let made = generate(&model, "the key turns", 40)?;
    assert_eq!(made, TEXT[..53]);
    Ok(())
}

#[test]
fn it_learns_in_mixed_precision() -> Result<()> {
    let model = rng::with_generator(&Generator::new(0), Transformer::new)?;
    let loss = train(&model, 300, Some(DType::BF16))?;
    assert!(loss < 0.3, "{loss}");
    assert!(model.parameters().iter().all(|p| p.dtype() == DType::F32));
    Ok(())
}
