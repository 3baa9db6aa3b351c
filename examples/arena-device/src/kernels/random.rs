//! `uniform`, `normal` and `bernoulli`: functions of an element's row-major index by `keyway_sdk::philox::element`, so that
//! every device draws the same values.

use super::kernel;
use crate::arena::{self, Cell};
use crate::operand::Operand;
use keyway_sdk::author::strided::{Strided, row_major};
use keyway_sdk::author::{Call, Error};
use keyway_sdk::philox::{element, normal_pair, uniform_f64};

/// The random words of a call's elements; the seed and offset are arguments `at` and `at + 1`.
struct Words {
    seed: u64,
    offset: u64,
}

impl Words {
    fn of(call: &Call<'_>, at: usize) -> Result<Words, Error> {
        Ok(Words { seed: call.int(at)? as u64, offset: call.int(at + 1)? as u64 })
    }

    /// The block of element `number` where `elements` elements share one, and the element's index in it.
    fn block(&self, number: usize, elements: usize) -> ([u32; 4], usize) {
        let mut words = [0; 4];
        element::words(self.seed, self.offset.wrapping_add((number / elements) as u64), &mut words);
        (words, number % elements)
    }
}

/// Computes each element of the output from its row-major index, and from the element of argument 0 at the same coordinates.
fn produce<T: Cell>(call: &Call<'_>, make: impl Fn(usize, T) -> T) -> Result<(), Error> {
    let mut memory = arena::lock();
    let (out, own) = (Operand::<T>::output(&memory, call)?, Operand::<T>::argument(&memory, call, 0)?);
    let numbers = row_major(out.sizes)?;
    for [number, o, i] in Strided::new(out.sizes, [&numbers, out.strides, own.strides])?.offsets() {
        let value = make(number, own.get(&memory, i));
        out.set(&mut memory, o, value);
    }
    Ok(())
}

fn uniform(call: &Call<'_>) -> Result<(), Error> {
    let (low, high, words) = (call.float(1)? as f32, call.float(2)? as f32, Words::of(call, 3)?);
    produce(call, |number, _| {
        let (block, own) = words.block(number, 4);
        let made = low + (high - low) * element::fraction32(block[own], 24);
        if made < high { made } else { low }
    })
}

fn normal(call: &Call<'_>) -> Result<(), Error> {
    let (mean, std, words) = (call.float(1)? as f32, call.float(2)? as f32, Words::of(call, 3)?);
    produce(call, |number, _| {
        let (block, own) = words.block(number, 4);
        let pair = own & !1;
        let made = normal_pair(u64::from(block[pair]) << 32, u64::from(block[pair + 1]) << 32);
        mean + std * made[own & 1] as f32
    })
}

fn uniform_wide(call: &Call<'_>) -> Result<(), Error> {
    let (low, high, words) = (call.float(1)?, call.float(2)?, Words::of(call, 3)?);
    produce(call, |number, _| {
        let (block, own) = words.block(number, 2);
        let made = low + (high - low) * uniform_f64(block[2 * own], block[2 * own + 1]);
        if made < high { made } else { low }
    })
}

fn normal_wide(call: &Call<'_>) -> Result<(), Error> {
    let (mean, std, words) = (call.float(1)?, call.float(2)?, Words::of(call, 3)?);
    produce(call, |number, _| {
        let (block, own) = words.block(number, 2);
        let bits = |at: usize| (u64::from(block[at]) << 32) | u64::from(block[at + 1]);
        mean + std * normal_pair(bits(0), bits(2))[own]
    })
}

/// One probability for all elements, or one for each.
fn bernoulli<T: Cell>(call: &Call<'_>) -> Result<(), Error> {
    let p = if call.is_none(1)? { None } else { Some(call.float(1)?) };
    let words = Words::of(call, 2)?;
    produce(call, |number, value: T| {
        let (block, own) = words.block(number, 4);
        T::from_i64(i64::from(element::happens(block[own], p.unwrap_or(value.to_f64()))))
    })
}

kernel!("uniform", "Tffii>T", [f32 => uniform, f64 => uniform_wide]);
kernel!("normal", "Tffii>T", [f32 => normal, f64 => normal_wide]);
kernel!("bernoulli", "Tfii>T", [f32 => bernoulli::<f32>, bool => bernoulli::<bool>]);
