//! Philox4x32-10, a counter-based generator.
//!
//! Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
//!
//! # The stream
//! A seed is a key of 64 bits, and each key has 2^64 streams. Draw `n` of stream `s` is word `n % 4` of `block(key, [n/4 low,
//! n/4 high, s low, s high])`, so any part of a stream can be computed without the previous ones, and threads or devices that
//! share a stream compute the same values. Conversions of draws:
//! - [`uniform_f32`]: one draw, its upper 24 bits;
//! - [`uniform_f64`]: two draws, the first above the second, the upper 53 bits of the 64;
//! - [`normal_pair`]: two draws for two values in f32, four draws for two values in f64 (Box-Muller).
//!
//! A counter-based generator was preferred to one with a running state, because its result cannot depend on how work is
//! split among threads.

/// Multipliers of the two halves of the counter.
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// The key increments of each round (Weyl sequence): the golden ratio and the square root of 3 minus 1, as fractions of
/// 2^32.
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// One block: four words from a key and a counter.
#[must_use]
pub fn block(mut key: [u32; 2], mut counter: [u32; 4]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let (high0, low0) = wide_product(MULTIPLIERS[0], counter[0]);
        let (high1, low1) = wide_product(MULTIPLIERS[1], counter[2]);
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

#[inline(always)]
fn wide_product(a: u32, b: u32) -> (u32, u32) {
    halves(u64::from(a) * u64::from(b))
}

/// The upper and the lower 32 bits.
#[inline(always)]
fn halves(value: u64) -> (u32, u32) {
    ((value >> 32) as u32, value as u32)
}

/// A value in [0, 1), a multiple of 2^-24.
#[must_use]
pub fn uniform_f32(draw: u32) -> f32 {
    (draw >> 8) as f32 * (1.0 / (1u32 << 24) as f32)
}

/// A value in [0, 1), a multiple of 2^-53.
#[must_use]
pub fn uniform_f64(high: u32, low: u32) -> f64 {
    fraction((u64::from(high) << 32) | u64::from(low))
}

/// The upper 53 bits as a value in [0, 1).
#[must_use]
pub fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Two independent normal values of mean 0 and variance 1 from two words of 64 random bits (G. E. P. Box, M. E. Muller,
/// 1958). The first word is mapped to (0, 1], so that its logarithm is finite; no result is above 8.6 in magnitude.
#[must_use]
pub fn normal_pair(first: u64, second: u64) -> [f64; 2] {
    let radius = (-2.0 * (1.0 - fraction(first)).ln()).sqrt();
    let (sine, cosine) = (std::f64::consts::TAU * fraction(second)).sin_cos();
    [radius * cosine, radius * sine]
}

/// The random values of a tensor's elements, as every backend's random kernels compute them.
///
/// A call has a seed and an offset. Elements are counted in logical row-major order, for any strides, and `block(seed, [b low,
/// b high, 0, 0])` is block `b`:
/// - *one word*: element `i` has word `i % 4` of block `offset + i / 4`;
/// - *two words*: element `i` has words `2 (i % 2)` (the upper 32 bits) and `2 (i % 2) + 1` of block
///   `offset + i / 2`.
///
/// Conversions of the draws (`digits` is 11 for f16, 8 for bf16, 24 for f32, 53 for f64 and all other dtypes):
/// - uniform in `low..high`: `low + (high - low) u` in f32 (f64 for f64), where `u` is the upper `digits` bits as a
///   fraction, of one word (f64: two words); a result that rounds to `high` is replaced by `low`;
/// - normal: [`normal_pair`] of the words of elements `2k` and `2k + 1`, its first value for the even one, times the
///   standard deviation plus the mean, in f32 (f64 for f64); each element has one word, in the upper 32 of 64 bits (f64:
///   two words);
/// - bernoulli and dropout: one word as a fraction of 2^32 is less than the probability, for every dtype;
/// - integers in `low..high`: two words, `low + (bits * (high - low)) / 2^64`, for every dtype.
///
/// An op on `n` elements consumes `n / 4` blocks for one word and `n / 2` for two, rounded up.
pub mod element {
    use super::{MULTIPLIERS, ROUNDS, WEYL, block, halves};

    /// The number of blocks computed together, so that the compiler vectorises the loop over them.
    const SIDE: usize = 32;
    /// The bits of a word.
    const WORD: u64 = u32::MAX as u64;

    /// Fills `words`, starting with word 0 of block `first`.
    #[inline]
    pub fn words(seed: u64, first: u64, words: &mut [u32]) {
        fill::<u32, 4>(seed, first, words, |[a, b, c, d]| [a as u32, b as u32, c as u32, d as u32]);
    }

    /// Fills `pairs` with two words each, the first in the upper half, starting with word 0 of block `first`.
    #[inline]
    pub fn pairs(seed: u64, first: u64, pairs: &mut [u64]) {
        fill::<u64, 2>(seed, first, pairs, |[a, b, c, d]| [a << 32 | b & WORD, c << 32 | d & WORD]);
    }

    /// Fills `made`, starting at block `first`, with the `N` values computed from the words of each block.
    #[inline(always)]
    fn fill<T: Copy, const N: usize>(seed: u64, first: u64, made: &mut [T], of: impl Fn([u64; 4]) -> [T; N]) {
        let (high, low) = halves(seed);
        let (many, rest) = made.as_chunks_mut::<N>();
        let (many, few) = many.as_chunks_mut::<SIDE>();
        let mut next = first;
        let [mut a, mut b, mut c, mut d] = [[0; SIDE]; 4];
        for made in many {
            blocks([low, high], next, (&mut a, &mut b), (&mut c, &mut d));
            for l in 0..SIDE {
                made[l] = of([a[l], b[l], c[l], d[l]]);
            }
            next = next.wrapping_add(SIDE as u64);
        }
        let mut one = || {
            let (counter_high, counter_low) = halves(next);
            let [a, b, c, d] = block([low, high], [counter_low, counter_high, 0, 0]);
            next = next.wrapping_add(1);
            of([u64::from(a), u64::from(b), u64::from(c), u64::from(d)])
        };
        few.iter_mut().for_each(|made| *made = one());
        if !rest.is_empty() {
            rest.copy_from_slice(&one()[..rest.len()]);
        }
    }

    /// The words of [`block`] for the counters that start at `first`, each in the lower half of a u64, in which products of
    /// two words are computed; the upper half is not cleared.
    #[inline(always)]
    fn blocks(
        mut key: [u32; 2],
        first: u64,
        (a, b): (&mut [u64; SIDE], &mut [u64; SIDE]),
        (c, d): (&mut [u64; SIDE], &mut [u64; SIDE]),
    ) {
        let (m0, m1) = (u64::from(MULTIPLIERS[0]), u64::from(MULTIPLIERS[1]));
        for l in 0..SIDE {
            let counter = first.wrapping_add(l as u64);
            (a[l], b[l], c[l], d[l]) = (counter, counter >> 32, 0, 0);
        }
        for _ in 0..ROUNDS {
            let (k0, k1) = (u64::from(key[0]), u64::from(key[1]));
            for l in 0..SIDE {
                let (product0, product1) = (m0 * (a[l] & WORD), m1 * (c[l] & WORD));
                (a[l], b[l]) = ((product1 >> 32) ^ b[l] ^ k0, product1);
                (c[l], d[l]) = ((product0 >> 32) ^ d[l] ^ k1, product0);
            }
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
    }

    /// The upper `digits` bits of a word as a fraction in [0, 1).
    #[inline(always)]
    #[must_use]
    pub fn fraction32(word: u32, digits: u32) -> f32 {
        (word >> (32 - digits)) as f32 * (1.0 / (1u32 << digits) as f32)
    }

    /// Whether an event of probability `p` happens.
    #[inline(always)]
    #[must_use]
    pub fn happens(word: u32, p: f64) -> bool {
        f64::from(word) * (1.0 / 4_294_967_296.0) < p
    }

    /// An integer in `0..bound` from 64 bits; the bias is less than `bound` / 2^64.
    #[inline(always)]
    #[must_use]
    pub fn below(bits: u64, bound: u64) -> u64 {
        ((u128::from(bits) * u128::from(bound)) >> 64) as u64
    }
}

/// One stream of a seed, read from its start or from any offset.
#[derive(Clone, Debug, PartialEq)]
pub struct Philox {
    key: [u32; 2],
    stream: u64,
    /// The number of the next draw.
    next: u64,
    /// The block with the next draw, once it has been computed.
    words: Option<[u32; 4]>,
}

impl Philox {
    /// Stream 0 of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with_stream(seed, 0)
    }

    /// A stream of a seed; streams of one seed share no block.
    #[must_use]
    pub fn with_stream(seed: u64, stream: u64) -> Self {
        let (high, low) = halves(seed);
        Self { key: [low, high], stream, next: 0, words: None }
    }

    /// The number of the next draw.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.next
    }

    /// Seeks to a draw by its number.
    pub fn seek(&mut self, draw: u64) {
        self.next = draw;
        self.words = None;
    }

    /// The next 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        let (number, word) = (self.next / 4, (self.next % 4) as usize);
        let (high, low) = halves(number);
        let (stream_high, stream_low) = halves(self.stream);
        let words = match self.words {
            Some(words) if word != 0 => words,
            _ => block(self.key, [low, high, stream_low, stream_high]),
        };
        self.words = Some(words);
        self.next = self.next.wrapping_add(1);
        words[word]
    }

    /// The next 64 random bits, from two draws, the first above the second.
    pub fn next_u64(&mut self) -> u64 {
        let high = u64::from(self.next_u32());
        (high << 32) | u64::from(self.next_u32())
    }

    /// A value in [0, 1) from one draw.
    pub fn uniform_f32(&mut self) -> f32 {
        uniform_f32(self.next_u32())
    }

    /// A value in [0, 1) from two draws.
    pub fn uniform_f64(&mut self) -> f64 {
        let high = self.next_u32();
        uniform_f64(high, self.next_u32())
    }

    /// Two normal values of mean 0 and variance 1 from two draws.
    pub fn normal_pair_f32(&mut self) -> [f32; 2] {
        let first = u64::from(self.next_u32()) << 32;
        let second = u64::from(self.next_u32()) << 32;
        normal_pair(first, second).map(|number| number as f32)
    }

    /// Two normal values of mean 0 and variance 1 from four draws.
    pub fn normal_pair_f64(&mut self) -> [f64; 2] {
        let first = self.next_u64();
        normal_pair(first, self.next_u64())
    }

    /// An integer in `0..bound`, each equally likely; 0 if `bound` is 0.
    ///
    /// It consumes two draws, and two more each time the product is rejected (D. Lemire, "Fast random integer generation in
    /// an interval", 2019), which happens with probability `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        let uneven = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= uneven {
                return (product >> 64) as u64;
            }
        }
    }

    /// Shuffles a slice, each order equally likely (Fisher-Yates; R. Durstenfeld, 1964).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// The integers `0..len` in random order.
    pub fn permutation(&mut self, len: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..len).collect();
        self.shuffle(&mut order);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        // From the file kat_vectors of the authors' library Random123: counter, key, result.
        let ones = u32::MAX;
        let vectors = [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([ones; 4], [ones; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (counter, key, result) in vectors {
            assert_eq!(block(key, counter), result);
        }
    }

    #[test]
    fn a_stream_is_its_definition() {
        let (seed, stream) = (0x0123_4567_89ab_cdef, 0x1122_3344_5566_7788);
        let mut generator = Philox::with_stream(seed, stream);
        for draw in 0..9u32 {
            let words = block([0x89ab_cdef, 0x0123_4567], [draw / 4, 0, 0x5566_7788, 0x1122_3344]);
            assert_eq!(generator.next_u32(), words[draw as usize % 4], "draw {draw}");
        }
    }

    #[test]
    fn words_of_many_blocks_are_those_of_each() {
        for (first, n) in [(0, 3), (5, 256), (u64::from(u32::MAX) - 7, 1024), (u64::MAX - 40, 777)] {
            let mut words = vec![0; n];
            element::words(0x0123_4567_89ab_cdef, first, &mut words);
            for (i, word) in words.into_iter().enumerate() {
                let (high, low) = halves(first.wrapping_add(i as u64 / 4));
                assert_eq!(word, block([0x89ab_cdef, 0x0123_4567], [low, high, 0, 0])[i % 4], "{first} {i}");
            }
            let mut pairs = vec![0; n];
            element::pairs(0x0123_4567_89ab_cdef, first, &mut pairs);
            for (i, pair) in pairs.into_iter().enumerate() {
                let (high, low) = halves(first.wrapping_add(i as u64 / 2));
                let words = block([0x89ab_cdef, 0x0123_4567], [low, high, 0, 0]);
                let k = i % 2 * 2;
                assert_eq!(halves(pair), (words[k], words[k + 1]), "{first} {i}");
            }
        }
    }

    #[test]
    fn any_place_can_be_reached() {
        let mut whole = Philox::new(7);
        let draws: Vec<u32> = (0..23).map(|_| whole.next_u32()).collect();
        for start in [0usize, 1, 3, 4, 5, 18, 22] {
            let mut part = Philox::new(7);
            part.next_u32();
            part.seek(start as u64);
            let rest: Vec<u32> = (start..23).map(|_| part.next_u32()).collect();
            assert_eq!(rest, draws[start..]);
            assert_eq!(part.position(), 23);
        }
        let mut far = Philox::new(7);
        far.seek(4 << 32);
        assert_eq!(far.next_u32(), block([7, 0], [0, 1, 0, 0])[0]);
        far.seek(u64::MAX);
        far.next_u32();
        assert_eq!(far.next_u32(), draws[0], "the stream is a ring");
    }

    #[test]
    fn seeds_and_streams_differ() {
        let first = |seed, stream| Philox::with_stream(seed, stream).next_u64();
        let all = [first(0, 0), first(1, 0), first(1 << 32, 0), first(0, 1), first(0, 1 << 32)];
        let different: std::collections::BTreeSet<u64> = all.into();
        assert_eq!(different.len(), all.len());
    }

    #[test]
    fn uniform_numbers_stay_below_one() {
        assert_eq!((uniform_f32(0), uniform_f64(0, 0)), (0.0, 0.0));
        assert_eq!(uniform_f32(u32::MAX), 1.0 - f32::EPSILON / 2.0);
        assert_eq!(uniform_f64(u32::MAX, u32::MAX), 1.0 - f64::EPSILON / 2.0);
        assert_eq!((uniform_f32(1 << 31), uniform_f64(1 << 31, 0)), (0.5, 0.5));
    }

    #[test]
    fn the_largest_normal_number_is_finite() {
        let [largest, zero] = normal_pair(u64::MAX, 0);
        assert!((8.5..8.6).contains(&largest), "{largest}");
        assert_eq!(zero, 0.0);
        assert_eq!(normal_pair(0, 0), [0.0, 0.0]);
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        const N: usize = 200_000;
        let mut generator = Philox::new(3);
        let check = |name: &str, numbers: &[f64], mean: f64, variance: f64| {
            let m = numbers.iter().sum::<f64>() / numbers.len() as f64;
            let v = numbers.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / numbers.len() as f64;
            assert!((m - mean).abs() < 0.01 && (v - variance).abs() < 0.01, "{name}: mean {m}, variance {v}");
        };
        let uniform: Vec<f64> = (0..N).map(|_| generator.uniform_f64()).collect();
        check("uniform f64", &uniform, 0.5, 1.0 / 12.0);
        let uniform: Vec<f64> = (0..N).map(|_| f64::from(generator.uniform_f32())).collect();
        check("uniform f32", &uniform, 0.5, 1.0 / 12.0);
        let normal: Vec<f64> = (0..N / 2).flat_map(|_| generator.normal_pair_f64()).collect();
        check("normal f64", &normal, 0.0, 1.0);
        let normal: Vec<f64> = (0..N / 2).flat_map(|_| generator.normal_pair_f32()).map(f64::from).collect();
        check("normal f32", &normal, 0.0, 1.0);
    }

    #[test]
    fn bounded_integers_cover_their_range_evenly() {
        let mut generator = Philox::new(11);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[generator.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        assert_eq!((generator.below(0), generator.below(1)), (0, 0));
        let large = (1 << 63) + 1;
        assert!((0..100).all(|_| generator.below(large) < large));
    }

    #[test]
    fn a_permutation_holds_each_integer_once() {
        for len in [0, 1, 2, 1_437] {
            let mut order = Philox::new(5).permutation(len);
            order.sort_unstable();
            assert!(order.into_iter().eq(0..len));
        }
        assert_eq!(Philox::new(5).permutation(50), Philox::new(5).permutation(50));
        assert_ne!(Philox::new(5).permutation(50), Philox::new(6).permutation(50));
    }
}
