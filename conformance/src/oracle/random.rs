//! Random ops. Each has its position in the random stream as arguments, so that its result is a function of them;
//! `keyway_sdk::philox` documents the stream.
//!
//! Source of the generator: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as
//! easy as 1, 2, 3", SC 2011, Philox4x32 of 10 rounds.

use super::pointwise::{Outcome, unknown};
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number, flat, round_to};
use keyway::DType;

/// One block of four words, from a counter of 128 bits and a key of 64.
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..10 {
        if round > 0 {
            key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
        }
        let left = 0xD251_1F53u64 * u64::from(counter[0]);
        let right = 0xCD9E_8D57u64 * u64::from(counter[2]);
        let (high, low) = (|v: u64| (v >> 32) as u32, |v: u64| v as u32);
        counter =
            [high(right) ^ counter[1] ^ key[0], low(right), high(left) ^ counter[3] ^ key[1], low(left)];
    }
    counter
}

/// A position in the stream: the seed and the first block.
#[derive(Clone, Copy)]
struct StreamOffset {
    seed: u64,
    offset: u64,
}

impl StreamOffset {
    /// The position from two arguments, whose bits are passed as signed integers.
    fn of(inputs: &Inputs, i: usize) -> Result<StreamOffset, Unknown> {
        Ok(StreamOffset { seed: inputs.int(i)? as u64, offset: inputs.int(i + 1)? as u64 })
    }

    fn block(self, block: u64) -> [u32; 4] {
        let at = self.offset.wrapping_add(block);
        philox([at as u32, (at >> 32) as u32, 0, 0], [self.seed as u32, (self.seed >> 32) as u32])
    }

    /// The word of element `i` of an op that uses one word for each.
    fn word(self, i: usize) -> u32 {
        self.block(i as u64 / 4)[i % 4]
    }

    /// The 64 bits of element `i` of an op that uses two words for each.
    fn long(self, i: usize) -> u64 {
        let (block, at) = (self.block(i as u64 / 2), 2 * (i % 2));
        u64::from(block[at]) << 32 | u64::from(block[at + 1])
    }

    /// The 64 random bits of element `i` of a float dtype: if there is only one word, the bits that only f64 needs are 0.
    fn bits(self, i: usize, dtype: DType) -> u64 {
        if dtype == DType::F64 { self.long(i) } else { u64::from(self.word(i)) << 32 }
    }
}

/// The upper `digits` of 64 bits as a fraction in [0, 1).
fn fraction(bits: u64, digits: i32) -> f64 {
    (bits >> (64 - digits)) as f64 * 2f64.powi(-digits)
}

/// Computes each element from its row-major index and its old value.
fn draw(inputs: &Inputs, element: impl Fn(usize, Number) -> Number) -> Outcome {
    let like = inputs.array(0)?;
    Ok(vec![Array::from_fn(like.dtype, like.sizes.clone(), |index| {
        element(flat(&like.sizes, index), like.at(index))
    })])
}

/// The dtype of the first argument, which must be a float.
fn float(inputs: &Inputs) -> Result<DType, Unknown> {
    match inputs.array(0)?.dtype {
        dtype if dtype.is_float() => Ok(dtype),
        _ => unknown("it makes floats"),
    }
}

/// Uniform in `low..high`. Which results round to `high`, and thus become `low`, depends on the precision, so this is
/// computed in f32 unless the dtype is f64, as specified.
fn uniform(inputs: &Inputs) -> Outcome {
    let (dtype, stream) = (float(inputs)?, StreamOffset::of(inputs, 3)?);
    let computed = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let (low, high) = (round_to(inputs.float(1)?, computed), round_to(inputs.float(2)?, computed));
    if low > high || !(high - low).is_finite() {
        return unknown("the bounds have no numbers between them");
    }
    let digits = match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        DType::F64 => 53,
        _ => 24,
    };
    draw(inputs, |i, _| {
        let u = fraction(stream.bits(i, dtype), digits);
        let span = round_to(round_to(high - low, computed) * u, computed);
        let value = round_to(round_to(low + span, computed), dtype);
        Number::Float(if value < round_to(high, dtype) { value } else { low })
    })
}

/// Box-Muller transform (G. E. P. Box, M. E. Muller, "A note on the generation of random normal deviates", 1958), two elements at
/// a time: the cosine for the even one, the sine for the odd one.
fn normal(inputs: &Inputs) -> Outcome {
    let (dtype, stream) = (float(inputs)?, StreamOffset::of(inputs, 3)?);
    let (mean, deviation) = (inputs.float(1)?, inputs.float(2)?);
    if deviation < 0.0 || deviation.is_nan() {
        return unknown("the standard deviation is negative");
    }
    draw(inputs, |i, _| {
        let unit = |i| fraction(stream.bits(i, dtype), 53);
        let (first, second) = (unit(i - i % 2), unit(i - i % 2 + 1));
        let radius = (-2.0 * (1.0 - first).ln()).sqrt();
        let angle = 2.0 * std::f64::consts::PI * second;
        Number::Float(mean + deviation * radius * if i % 2 == 0 { angle.cos() } else { angle.sin() })
    })
}

/// The quantile of the exponential distribution at the middle of an interval of fractions: of 2^-52 for f64, otherwise of 2^-32.
fn exponential(inputs: &Inputs) -> Outcome {
    let (dtype, stream) = (float(inputs)?, StreamOffset::of(inputs, 2)?);
    let rate = inputs.float(1)?;
    if rate.is_nan() || rate <= 0.0 {
        return unknown("the rate is not above 0");
    }
    let digits = if dtype == DType::F64 { 52 } else { 32 };
    draw(inputs, |i, _| {
        let middle = fraction(stream.bits(i, dtype), digits) + 0.5 * 2f64.powi(-digits);
        Number::Float(-(-middle).ln_1p() / rate)
    })
}

/// The uniform values in [0, 1) of a stream, two words each.
struct Uniforms {
    seed: u64,
    stream: u64,
    next: u64,
}

impl Uniforms {
    fn next(&mut self) -> f64 {
        let (nth, at) = (self.next / 2, 2 * (self.next % 2) as usize);
        self.next += 1;
        let counter = [nth as u32, (nth >> 32) as u32, self.stream as u32, (self.stream >> 32) as u32];
        let words = philox(counter, [self.seed as u32, (self.seed >> 32) as u32]);
        fraction(u64::from(words[at]) << 32 | u64::from(words[at + 1]), 53)
    }
}

/// The logarithm of the factorial of `k`: of the product, or by Stirling's series.
fn log_factorial(k: f64) -> f64 {
    if k < 20.0 {
        return (2..=k as i32).map(f64::from).product::<f64>().ln();
    }
    let series = 1.0 / (12.0 * k) - 1.0 / (360.0 * k.powi(3)) + 1.0 / (1260.0 * k.powi(5))
        - 1.0 / (1680.0 * k.powi(7));
    (k + 0.5) * k.ln() - k + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

/// D. E. Knuth, "The Art of Computer Programming", volume 2, 3.4.1, algorithm Q: the number of uniform values whose product
/// exceeds `exp(-rate)`. `None` if the last digits decide.
fn product_count(rate: f64, uniforms: &mut Uniforms) -> Option<f64> {
    let (limit, mut product) = ((-rate).exp(), 1.0);
    for count in 0.. {
        product *= uniforms.next();
        if (product - limit).abs() <= 1e-13 * limit {
            return None;
        }
        if product < limit {
            return Some(f64::from(count));
        }
    }
    None
}

/// W. Hörmann, "The transformed rejection method for generating Poisson random variables", Insurance: Mathematics and
/// Economics 12, 1993, algorithm PTRS. `None` if the last digits decide.
fn rejected_count(rate: f64, uniforms: &mut Uniforms) -> Option<f64> {
    let b = 0.931 + 2.53 * rate.sqrt();
    let a = -0.059 + 0.02483 * b;
    let near = |x: f64, y: f64| (x - y).abs() <= 1e-10 * (1.0 + y.abs());
    loop {
        let (u, v) = (uniforms.next() - 0.5, 1.0 - uniforms.next());
        let us = 0.5 - u.abs();
        let value = (2.0 * a / us + b) * u + rate + 0.43;
        let k = value.floor();
        let limit = 0.9277 - 3.6224 / (b - 2.0);
        if near(value, value.round()) || near(us, 0.07) || near(v, limit) || near(us, 0.013) || near(v, us) {
            return None;
        }
        if us >= 0.07 && v <= limit {
            return Some(k);
        }
        if k < 0.0 || (us < 0.013 && v > us) {
            continue;
        }
        let left = v.ln() + (1.1239 + 1.1328 / (b - 3.4)).ln() - (a / (us * us) + b).ln();
        let right = k * rate.ln() - rate - log_factorial(k);
        if near(left, right) {
            return None;
        }
        if left < right {
            return Some(k);
        }
    }
}

/// Poisson samples, each from a stream of its own.
fn poisson(inputs: &Inputs) -> Outcome {
    float(inputs)?;
    let StreamOffset { seed, offset } = StreamOffset::of(inputs, 1)?;
    draw(inputs, |i, own| {
        let rate = own.float();
        if rate.is_nan() || rate < 0.0 || rate.is_infinite() {
            return Number::Float(f64::NAN);
        }
        let mut uniforms = Uniforms { seed, stream: offset.wrapping_add(i as u64 + 1), next: 0 };
        let count = match rate {
            0.0 => Some(0.0),
            // Values near the limits of a double leave no digits for the acceptance.
            rate if rate > 1e8 => None,
            rate if rate < 10.0 => product_count(rate, &mut uniforms),
            rate => rejected_count(rate, &mut uniforms),
        };
        count.map_or(Number::Any, Number::Float)
    })
}

/// Whether an event of probability `p` happens.
fn happens(word: u32, p: f64) -> bool {
    f64::from(word) / 2f64.powi(32) < p
}

/// The probability in argument 1.
fn probability(inputs: &Inputs) -> Result<f64, Unknown> {
    let p = inputs.float(1)?;
    if (0.0..=1.0).contains(&p) { Ok(p) } else { unknown("it is no probability") }
}

/// 1 with a given probability, or with that of each element, otherwise 0.
fn bernoulli(inputs: &Inputs) -> Outcome {
    let (dtype, stream) = (inputs.array(0)?.dtype, StreamOffset::of(inputs, 2)?);
    let given = if inputs.is_none(1) { None } else { Some(probability(inputs)?) };
    if given.is_none() {
        float(inputs)?;
    }
    draw(inputs, |i, own| Number::Bool(happens(stream.word(i), given.unwrap_or(own.float()))).cast(dtype))
}

/// 0 with probability `p`, otherwise the element divided by `1 - p`.
fn dropout(inputs: &Inputs) -> Outcome {
    float(inputs)?;
    let (p, stream) = (probability(inputs)?, StreamOffset::of(inputs, 2)?);
    draw(inputs, |i, own| {
        Number::Float(if happens(stream.word(i), p) { 0.0 } else { own.float() / (1.0 - p) })
    })
}

/// Equally likely in `low..high`.
fn random_int(inputs: &Inputs) -> Outcome {
    let (low, high, stream) =
        (i128::from(inputs.int(1)?), i128::from(inputs.int(2)?), StreamOffset::of(inputs, 3)?);
    let dtype = inputs.array(0)?.dtype;
    let (least, most) = dtype.integer_range().unwrap_or((i128::MIN, i128::MAX));
    if dtype == DType::BOOL || low >= high || low < least || high - 1 > most {
        return unknown("the dtype has no integers between the bounds");
    }
    draw(inputs, |i, _| {
        // 128 bits suffice for the product: 64 of the stream times at most 2^64.
        let share = (u128::from(stream.long(i)) * (high - low) as u128) >> 64;
        Number::Int(low + share as i128).cast(dtype)
    })
}

/// Indices drawn from rows of probabilities. With replacement, the first index at which the cumulative sum exceeds a random
/// fraction of the total; without, the indices of the smallest `-log(1 - u) / p` in order. Any result is accepted if the
/// last digits of two candidates decide.
fn multinomial(inputs: &Inputs) -> Outcome {
    let (a, drawn, replacement) = (inputs.array(0)?, inputs.int(1)?, inputs.bool(2)?);
    float(inputs)?;
    let stream = StreamOffset::of(inputs, 3)?;
    let (Some((&n, rows)), Ok(drawn)) = (a.sizes.split_last(), usize::try_from(drawn)) else {
        return unknown("it takes rows, and 1 sample or more");
    };
    if rows.len() > 1 || n == 0 || drawn == 0 {
        return unknown("it takes rows, and 1 sample or more");
    }
    let mut values = Vec::new();
    for (nth, row) in a.floats().chunks(n).enumerate() {
        let above = row.iter().filter(|&&p| p > 0.0).count();
        let enough = if replacement { above > 0 } else { above >= drawn };
        if !enough || !row.iter().all(|p| (0.0..f64::INFINITY).contains(p)) {
            return unknown("a row is no distribution");
        }
        let unit = |i: usize| fraction(stream.long(i), 53);
        let most = row.iter().fold(0.0, |most: f64, &p| most.max(p));
        let row: Vec<f64> = row.iter().map(|p| p / most).collect();
        if replacement {
            let sums: Vec<f64> = row
                .iter()
                .scan(0.0, |sum, p| {
                    *sum += p;
                    Some(*sum)
                })
                .collect();
            for k in 0..drawn {
                let share = unit(nth * drawn + k) * sums[n - 1];
                let at = sums.partition_point(|&sum| sum <= share);
                let unsure = sums.iter().any(|&sum| (sum - share).abs() <= 1e-13 * share && sum != share);
                values.push(if unsure { Number::Any } else { Number::Int(at as i128) });
            }
            continue;
        }
        let key =
            |i: usize| if row[i] > 0.0 { -(-unit(nth * n + i)).ln_1p() / row[i] } else { f64::INFINITY };
        let mut keys: Vec<(f64, usize)> = (0..n).map(|i| (key(i), i)).collect();
        keys.sort_by(|a, b| a.0.total_cmp(&b.0));
        for k in 0..drawn {
            let near = |other: usize| (keys[k].0 - keys[other].0).abs() <= 1e-13 * keys[k].0;
            let unsure = (k > 0 && near(k - 1)) || (k + 1 < n && near(k + 1));
            values.push(if unsure { Number::Any } else { Number::Int(keys[k].1 as i128) });
        }
    }
    Ok(vec![Array::new(DType::I64, [rows, &[drawn]].concat(), values)])
}

/// The ops of this family.
pub const ALL: Family = &[
    ("bernoulli", bernoulli),
    ("dropout", dropout),
    ("exponential", exponential),
    ("multinomial", multinomial),
    ("normal", normal),
    ("poisson", poisson),
    ("random_int", random_int),
    ("uniform", uniform),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{Value, find};

    /// Known-answer tests from the file `kat_vectors` of Random123, the authors' own library: counter, key, result.
    #[test]
    fn the_generator_gives_the_known_answers() {
        let zero = [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
        assert_eq!(philox([0; 4], [0; 2]), zero);
        let ones = [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd];
        assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), ones);
        let (counter, key) =
            ([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]);
        assert_eq!(philox(counter, key), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    fn made(op: &str, dtype: DType, sizes: &[usize], rest: &[Value]) -> Vec<f64> {
        let like = Array::from_fn(dtype, sizes, |_| Number::Int(1).cast(dtype));
        let args = [Value::Array(like)].iter().chain(rest).cloned().collect();
        find(op).expect("an oracle")(&Inputs(args)).expect("an answer")[0].floats()
    }

    /// Seed 0 and block 0 are the first of the known answers.
    #[test]
    fn elements_take_their_words_in_order() {
        let stream = [Value::Int(0), Value::Int(0)];
        let unit = [Value::Float(0.0), Value::Float(1.0), stream[0].clone(), stream[1].clone()];
        let scale = 2f64.powi(-24);
        let words = [0x6627e8, 0xe169c5, 0xbc57ac, 0x9b00db].map(|word| f64::from(word) * scale);
        assert_eq!(made("uniform", DType::F32, &[2, 2], &unit), words);
        let double = made("uniform", DType::F64, &[2], &unit);
        assert_eq!(double[0], (0x6627_e8d5_e169_c58d_u64 >> 11) as f64 * 2f64.powi(-53));
        let bounds = [Value::Int(0), Value::Int(256), stream[0].clone(), stream[1].clone()];
        assert_eq!(made("random_int", DType::I64, &[2], &bounds), [f64::from(0x66), f64::from(0xbc)]);
        // 0x6627e8d5 / 2^32 is 0.399, 0xe169c58d / 2^32 is 0.881.
        let rare = [Value::Float(0.4), stream[0].clone(), stream[1].clone()];
        assert_eq!(made("bernoulli", DType::U8, &[2], &rare), [1.0, 0.0]);
        assert_eq!(made("dropout", DType::F64, &[2], &rare), [0.0, 1.0 / 0.6]);
    }

    #[test]
    fn exponential_and_poisson_values_have_the_moments_of_their_distributions() {
        let moments = |values: &[f64]| {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            (mean, values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n)
        };
        for dtype in [DType::F32, DType::F64] {
            let rest = [Value::Float(4.0), Value::Int(5), Value::Int(0)];
            let (mean, variance) = moments(&made("exponential", dtype, &[40_000], &rest));
            assert!((mean - 0.25).abs() < 0.005 && (variance - 0.0625).abs() < 0.003, "{mean} {variance}");
        }
        for rate in [0.5, 4.0, 12.0, 300.0] {
            let rates = Array::from_fn(DType::F64, [20_000], |_| Number::Float(rate));
            let args = vec![Value::Array(rates), Value::Int(5), Value::Int(0)];
            let values = poisson(&Inputs(args)).expect("counts").remove(0).values;
            let counts: Vec<f64> =
                values.iter().map(|v| if *v == Number::Any { rate } else { v.float() }).collect();
            let (mean, variance) = moments(&counts);
            // Five standard deviations of the mean, and of the variance of nearly normal values.
            assert!((mean - rate).abs() < 5.0 * (rate / 20_000.0).sqrt(), "{rate}: {mean}");
            assert!((variance / rate - 1.0).abs() < 0.1, "{rate}: {variance}");
        }
        assert!((log_factorial(20.0) - 2_432_902_008_176_640_000f64.ln()).abs() < 1e-13);
    }

    #[test]
    fn normal_numbers_have_the_moments_of_their_distribution() {
        let args = [Value::Float(0.0), Value::Float(1.0), Value::Int(5), Value::Int(0)];
        for dtype in [DType::F32, DType::F64] {
            let values = made("normal", dtype, &[40_000], &args);
            let mean = values.iter().sum::<f64>() / 40_000.0;
            let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 40_000.0;
            assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
        }
    }
}
