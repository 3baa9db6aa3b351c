//! The random kernels: `uniform`, `normal`, `exponential`, `poisson`, `bernoulli`, `random_int` and `dropout`, as defined in
//! [`keyway_sdk::philox::element`].

use super::indexed::{PIECE, produce, produce_from, produce_masked};
use crate::math;
use keyway_cpu_loops::{Cost, zip_wide};
use keyway_sdk::author::{Call, Element, Error, Float, Plain, Real, Widen};
use keyway_sdk::half::{bf16, f16};
use keyway_sdk::philox::{Philox, element, fraction};

/// The random words of a call: key and first counter of its Philox stream.
#[derive(Clone, Copy)]
struct Stream {
    seed: u64,
    offset: u64,
}

impl Stream {
    /// Reads the stream from arguments `at` and `at + 1`.
    fn of(call: &Call, at: usize) -> Result<Stream, Error> {
        Ok(Stream { seed: call.int(at)? as u64, offset: call.int(at + 1)? as u64 })
    }

    /// Generates one word for each of `n` elements, starting at element `first`, which is the first of a random block.
    fn single(self, first: usize, n: usize, words: &mut [u32; PIECE]) {
        element::words(
            self.seed,
            self.offset.wrapping_add(first as u64 / 4),
            &mut words[..n.next_multiple_of(4)],
        );
    }

    /// Writes for each element, starting at `first`, whether the event occurs: 1 or 0. Element `first` is the first of a
    /// random block.
    fn mask(self, first: usize, event: &Event, mask: &mut [u8]) {
        let mut words = [0; PIECE];
        self.single(first, mask.len(), &mut words);
        for (happens, word) in mask.iter_mut().zip(words) {
            *happens = u8::from(word < event.below || event.always);
        }
    }

    /// Generates two words for each element, the first one in the upper half, starting at element `first`, which is the
    /// first of a random block.
    fn double(self, first: usize, pairs: &mut [u64]) {
        element::pairs(self.seed, self.offset.wrapping_add(first as u64 / 2), pairs);
    }
}

/// A Bernoulli event as a threshold of random words; as [`element::happens`], by a comparison of integers.
struct Event {
    below: u32,
    always: bool,
}

/// The event of probability `p`: `word * 2^-32 < p` if and only if `word < ceil(p * 2^32)`.
fn event(p: f64) -> Event {
    let bound = (p * 4_294_967_296.0).ceil();
    Event { below: bound as u32, always: bound > f64::from(u32::MAX) }
}

/// Conversion of random bits to a uniform fraction in each type.
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
        let mut pairs = [0; PIECE];
        stream.double(first, &mut pairs[..values.len()]);
        for (value, pair) in values.iter_mut().zip(pairs) {
            let made = low + (high - low) * fraction(pair);
            *value = T::from_acc(if made < high { made } else { low });
        }
    })
}

/// [`normal_pair`](keyway_sdk::philox::normal_pair) of `n` pairs of fractions, with the results interleaved.
fn normal_pairs(fractions: &[[f64; PIECE / 2]; 2], n: usize, made: &mut [f64; PIECE]) {
    let (mut radius, mut sines, mut cosines) = ([0.0; PIECE / 2], [0.0; PIECE / 2], [0.0; PIECE / 2]);
    for (radius, fraction) in radius[..n].iter_mut().zip(&fractions[0]) {
        *radius = (-2.0 * math::log_f64(1.0 - fraction)).sqrt();
    }
    for ((sine, cosine), fraction) in sines[..n].iter_mut().zip(&mut cosines[..n]).zip(&fractions[1]) {
        (*sine, *cosine) = math::sin_cos_fast_f64(std::f64::consts::TAU * fraction);
    }
    for k in 0..n {
        made[2 * k] = radius[k] * cosines[k];
        made[2 * k + 1] = radius[k] * sines[k];
    }
}

fn normal<T: Float<Acc = f32>>(call: &Call) -> Result<(), Error> {
    let (mean, std, stream) = (call.float(1)? as f32, call.float(2)? as f32, Stream::of(call, 3)?);
    produce(call.out::<T>(0)?, Cost::Heavy, |first, values| {
        let (mut words, mut fractions, mut made) = ([0; PIECE], [[0.0; PIECE / 2]; 2], [0.0; PIECE]);
        let n = values.len().div_ceil(2);
        stream.single(first, values.len(), &mut words);
        for k in 0..n {
            // A word after 21 zero bits is a fraction of 32 bits.
            for j in 0..2 {
                fractions[j][k] = f64::from(words[2 * k + j]) * (1.0 / 4_294_967_296.0);
            }
        }
        normal_pairs(&fractions, n, &mut made);
        zip_wide((&made[..values.len()],), values, |(z,)| mean + std * z as f32);
    })
}

fn normal_double<T: Float<Acc = f64>>(call: &Call) -> Result<(), Error> {
    let (mean, std, stream) = (call.float(1)?, call.float(2)?, Stream::of(call, 3)?);
    produce(call.out::<T>(0)?, Cost::Heavy, |first, values| {
        let (mut pairs, mut fractions, mut made) = ([0; PIECE], [[0.0; PIECE / 2]; 2], [0.0; PIECE]);
        let n = values.len().div_ceil(2);
        // Both values of a pair are computed even if only the first is needed.
        stream.double(first, &mut pairs[..2 * n]);
        for k in 0..n {
            for j in 0..2 {
                fractions[j][k] = fraction(pairs[2 * k + j]);
            }
        }
        normal_pairs(&fractions, n, &mut made);
        zip_wide((&made[..values.len()],), values, |(z,)| mean + std * z);
    })
}

/// The middle of the interval of fractions with the same upper `digits` bits. `1 - middle` is exact for up to 52 bits.
fn middle(upper: u64, digits: i32) -> f64 {
    (upper as f64 + 0.5) * 2f64.powi(-digits)
}

fn exponential<T: Float<Acc = f32>>(call: &Call) -> Result<(), Error> {
    let (rate, stream) = (call.float(1)?, Stream::of(call, 2)?);
    produce(call.out::<T>(0)?, Cost::Heavy, |first, values| {
        let mut words = [0; PIECE];
        stream.single(first, values.len(), &mut words);
        zip_wide((&words[..values.len()],), values, |(word,)| {
            (-math::log_f64(1.0 - middle(u64::from(word), 32)) / rate) as f32
        });
    })
}

fn exponential_double<T: Float<Acc = f64>>(call: &Call) -> Result<(), Error> {
    let (rate, stream) = (call.float(1)?, Stream::of(call, 2)?);
    produce(call.out::<T>(0)?, Cost::Heavy, |first, values| {
        let mut pairs = [0; PIECE];
        let pairs = &mut pairs[..values.len()];
        stream.double(first, pairs);
        zip_wide((&*pairs,), values, |(pair,)| -math::log_f64(1.0 - middle(pair >> 12, 52)) / rate);
    })
}

/// The least rate of the algorithm PTRS.
const LARGE: f64 = 10.0;

/// Knuth's algorithm: the number of uniform values whose product is not below `exp(-rate)`.
fn count_of_products(rate: f64, stream: &mut Philox) -> f64 {
    let limit = (-rate).exp();
    let (mut count, mut product) = (0.0, stream.uniform_f64());
    while product > limit {
        count += 1.0;
        product *= stream.uniform_f64();
    }
    count
}

/// W. Hörmann's algorithm PTRS: a transformed uniform value, rejected by the logarithm of the probability.
fn transformed_rejection(rate: f64, stream: &mut Philox) -> f64 {
    let b = 0.931 + 2.53 * rate.sqrt();
    let a = -0.059 + 0.02483 * b;
    let (inverse, limit) = (1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2.0));
    loop {
        let u = stream.uniform_f64() - 0.5;
        let v = 1.0 - stream.uniform_f64();
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + rate + 0.43).floor();
        if us >= 0.07 && v <= limit {
            return k;
        }
        if k < 0.0 || (us < 0.013 && v > us) {
            continue;
        }
        let left = (v * inverse / (a / (us * us) + b)).ln();
        if left <= k * rate.ln() - rate - math::lgamma_f64(k + 1.0) {
            return k;
        }
    }
}

fn poisson<T: Float>(call: &Call) -> Result<(), Error> {
    let Stream { seed, offset } = Stream::of(call, 1)?;
    produce_from(call.view::<T>(0)?, call.out::<T>(0)?, Cost::Heavy, |first, rates, values| {
        for (i, (value, rate)) in values.iter_mut().zip(rates).enumerate() {
            let rate = rate.to_f64();
            let mut stream = Philox::with_stream(seed, offset.wrapping_add((first + i + 1) as u64));
            *value = T::from_f64(match rate {
                0.0 => 0.0,
                rate if !(0.0..f64::INFINITY).contains(&rate) => f64::NAN,
                rate if rate < LARGE => count_of_products(rate, &mut stream),
                rate => transformed_rejection(rate, &mut stream),
            });
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
    let ([never, always], happens) = ([0, 1].map(T::from_i64), event(call.float(1)?));
    produce_masked::<u16, T>(
        None,
        out,
        Cost::Medium,
        |first, mask| stream.mask(first, &happens, mask),
        |_, mask, values| {
            for (value, happens) in values.iter_mut().zip(mask) {
                *value = if *happens != 0 { always } else { never };
            }
        },
    )
}

fn random_int<T: Widen<Wide: Plain>>(call: &Call) -> Result<(), Error> {
    let (low, high, stream) = (call.int(1)?, call.int(2)?, Stream::of(call, 3)?);
    let bound = high.wrapping_sub(low) as u64;
    produce(call.out::<T>(0)?, Cost::Medium, |first, values| {
        let mut made = [0; PIECE];
        let made = &mut made[..values.len()];
        stream.double(first, made);
        if let Ok(bound) = u32::try_from(bound) {
            // As `element::below`, by 32-bit products, for which there are vector instructions.
            let bound = u64::from(bound);
            for made in made.iter_mut() {
                let (upper, lower) = ((*made >> 32) * bound, (*made & u64::from(u32::MAX)) * bound);
                *made = (upper + (lower >> 32)) >> 32;
            }
        } else {
            made.iter_mut().for_each(|made| *made = element::below(*made, bound));
        }
        zip_wide((&*made,), values, |(made,)| T::Wide::from_i64(low.wrapping_add(made as i64)));
    })
}

fn dropout<T: Float>(call: &Call) -> Result<(), Error> {
    let (p, stream) = (call.float(1)?, Stream::of(call, 2)?);
    let scale = <T::Acc as Element>::from_f64(1.0 / (1.0 - p));
    let dropped = event(p);
    produce_masked(
        Some(call.view::<T>(0)?),
        call.out::<T>(0)?,
        Cost::Medium,
        |first, mask| stream.mask(first, &dropped, mask),
        |read, mask, values| {
            // Both are computed: a branch on a random bit is mispredicted half of the time.
            zip_wide((read, mask), values, |(x, dropped)| {
                let kept = x.to_acc() * scale;
                if dropped != 0 { T::Acc::ZERO } else { kept }
            });
        },
    )
}

kernel!("uniform", "Tffii>T", uniform, [f32, f16, bf16]);
kernel!("uniform", "Tffii>T", uniform_double, [f64]);
kernel!("normal", "Tffii>T", normal, [f32, f16, bf16]);
kernel!("normal", "Tffii>T", normal_double, [f64]);
kernel!("exponential", "Tfii>T", exponential, [f32, f16, bf16]);
kernel!("exponential", "Tfii>T", exponential_double, [f64]);
kernel!("poisson", "Tii>T", poisson, [f32, f64, f16, bf16]);
kernel!("bernoulli", "Tfii>T", bernoulli, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
kernel!("random_int", "Tiiii>T", random_int, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("dropout", "Tfii>T", dropout, [f32, f64, f16, bf16]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_happens_for_the_words_whose_fraction_is_below_its_probability() {
        let words = [0, 1, 2, 1 << 30, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, u32::MAX - 1, u32::MAX];
        let probabilities =
            [0.0, 1e-300, 1e-10, 0.25, 0.5, f64::from_bits(0.5f64.to_bits() + 1), 0.3, 1.0 - 1e-10, 1.0];
        for p in probabilities {
            let event = event(p);
            for word in words {
                let happens = word < event.below || event.always;
                assert_eq!(happens, element::happens(word, p), "word {word} of probability {p}");
            }
        }
    }
}
