//! The random kernels: `uniform`, `normal`, `bernoulli`, `random_int` and `dropout`, as
//! [`keyway_sdk::philox::element`] defines them.

use super::indexed::{PIECE, produce, produce_from};
use keyway_cpu_loops::Cost;
use keyway_sdk::author::{Call, Element, Error, Float};
use keyway_sdk::half::{bf16, f16};
use keyway_sdk::philox::{element, normal_pair, uniform_f64};

/// Where a call's words come from.
#[derive(Clone, Copy)]
struct Stream {
    seed: u64,
    offset: u64,
}

impl Stream {
    /// From arguments `at` and `at + 1`.
    fn of(call: &Call, at: usize) -> Result<Stream, Error> {
        Ok(Stream { seed: call.int(at)? as u64, offset: call.int(at + 1)? as u64 })
    }

    /// One word for each of `n` elements from element `first` on, which is the first of a block.
    fn single(self, first: usize, n: usize, words: &mut [u32; PIECE]) {
        element::words(
            self.seed,
            self.offset.wrapping_add(first as u64 / 4),
            &mut words[..n.next_multiple_of(4)],
        );
    }

    /// Two words for each of `n` elements from element `first` on, which is the first of a block.
    fn double(self, first: usize, n: usize, words: &mut [u32; 2 * PIECE]) {
        element::words(
            self.seed,
            self.offset.wrapping_add(first as u64 / 2),
            &mut words[..(2 * n).next_multiple_of(4)],
        );
    }
}

fn wide(words: &[u32; 2 * PIECE], i: usize) -> u64 {
    (u64::from(words[2 * i]) << 32) | u64::from(words[2 * i + 1])
}

/// Bits of a uniform fraction in each type.
trait Digits: Float<Acc = f32> {
    const DIGITS: u32;
}

impl Digits for f32 {
    const DIGITS: u32 = 24;
}

impl Digits for f16 {
    const DIGITS: u32 = 11;
}

impl Digits for bf16 {
    const DIGITS: u32 = 8;
}

fn uniform<T: Digits>(call: &Call) -> Result<(), Error> {
    let (low, high, stream) = (call.float(1)? as f32, call.float(2)? as f32, Stream::of(call, 3)?);
    let (first_value, end) = (T::from_acc(low), T::from_acc(high));
    produce(call.out::<T>(0)?, Cost::Medium, |first, values| {
        let mut words = [0; PIECE];
        stream.single(first, values.len(), &mut words);
        for (value, word) in values.iter_mut().zip(words) {
            let made = T::from_acc(low + (high - low) * element::fraction32(word, T::DIGITS));
            *value = if made < end { made } else { first_value };
        }
    })
}

fn uniform_double<T: Float<Acc = f64>>(call: &Call) -> Result<(), Error> {
    let (low, high, stream) = (call.float(1)?, call.float(2)?, Stream::of(call, 3)?);
    produce(call.out::<T>(0)?, Cost::Medium, |first, values| {
        let mut words = [0; 2 * PIECE];
        stream.double(first, values.len(), &mut words);
        for (i, value) in values.iter_mut().enumerate() {
            let made = low + (high - low) * uniform_f64(words[2 * i], words[2 * i + 1]);
            *value = T::from_acc(if made < high { made } else { low });
        }
    })
}

fn normal<T: Float<Acc = f32>>(call: &Call) -> Result<(), Error> {
    let (mean, std, stream) = (call.float(1)? as f32, call.float(2)? as f32, Stream::of(call, 3)?);
    produce(call.out::<T>(0)?, Cost::Heavy, |first, values| {
        let mut words = [0; PIECE];
        stream.single(first, values.len(), &mut words);
        for (pair, words) in values.chunks_mut(2).zip(words.chunks_exact(2)) {
            let made = normal_pair(u64::from(words[0]) << 32, u64::from(words[1]) << 32);
            for (value, z) in pair.iter_mut().zip(made) {
                *value = T::from_acc(mean + std * z as f32);
            }
        }
    })
}

fn normal_double<T: Float<Acc = f64>>(call: &Call) -> Result<(), Error> {
    let (mean, std, stream) = (call.float(1)?, call.float(2)?, Stream::of(call, 3)?);
    produce(call.out::<T>(0)?, Cost::Heavy, |first, values| {
        let mut words = [0; 2 * PIECE];
        // Both numbers of a pair are made even where only the first is wanted.
        stream.double(first, values.len().next_multiple_of(2), &mut words);
        for (k, pair) in values.chunks_mut(2).enumerate() {
            let made = normal_pair(wide(&words, 2 * k), wide(&words, 2 * k + 1));
            for (value, z) in pair.iter_mut().zip(made) {
                *value = T::from_acc(mean + std * z);
            }
        }
    })
}

fn bernoulli<T: Element>(call: &Call) -> Result<(), Error> {
    let (out, stream) = (call.out::<T>(0)?, Stream::of(call, 2)?);
    if call.is_none(1)? {
        return produce_from(call.view::<T>(0)?, out, Cost::Medium, |first, p, values| {
            let mut words = [0; PIECE];
            stream.single(first, values.len(), &mut words);
            for ((value, p), word) in values.iter_mut().zip(p).zip(words) {
                *value = T::from_i64(i64::from(element::happens(word, p.to_f64())));
            }
        });
    }
    let p = call.float(1)?;
    produce(out, Cost::Medium, |first, values| {
        let mut words = [0; PIECE];
        stream.single(first, values.len(), &mut words);
        for (value, word) in values.iter_mut().zip(words) {
            *value = T::from_i64(i64::from(element::happens(word, p)));
        }
    })
}

fn random_int<T: Element>(call: &Call) -> Result<(), Error> {
    let (low, high, stream) = (call.int(1)?, call.int(2)?, Stream::of(call, 3)?);
    let bound = high.wrapping_sub(low) as u64;
    produce(call.out::<T>(0)?, Cost::Medium, |first, values| {
        let mut words = [0; 2 * PIECE];
        stream.double(first, values.len(), &mut words);
        for (i, value) in values.iter_mut().enumerate() {
            *value = T::from_i64(low.wrapping_add(element::below(wide(&words, i), bound) as i64));
        }
    })
}

fn dropout<T: Float>(call: &Call) -> Result<(), Error> {
    let (p, stream) = (call.float(1)?, Stream::of(call, 2)?);
    let scale = <T::Acc as Element>::from_f64(1.0 / (1.0 - p));
    produce_from(call.view::<T>(0)?, call.out::<T>(0)?, Cost::Medium, |first, read, values| {
        let mut words = [0; PIECE];
        stream.single(first, values.len(), &mut words);
        for ((value, x), word) in values.iter_mut().zip(read).zip(words) {
            *value = if element::happens(word, p) { T::default() } else { T::from_acc(x.to_acc() * scale) };
        }
    })
}

kernel!("uniform", "Tffii>T", uniform, [f32, f16, bf16]);
kernel!("uniform", "Tffii>T", uniform_double, [f64]);
kernel!("normal", "Tffii>T", normal, [f32, f16, bf16]);
kernel!("normal", "Tffii>T", normal_double, [f64]);
kernel!("bernoulli", "Tfii>T", bernoulli, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
kernel!("random_int", "Tiiii>T", random_int, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("dropout", "Tfii>T", dropout, [f32, f64, f16, bf16]);
