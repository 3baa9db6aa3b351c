//! Initial values of parameters, in the default dtype and on the default device.
//!
//! They are drawn on the host from the CPU's default generator, so they are the same on every device:
//! [`manual_seed`](crate::manual_seed) seeds it, and [`rng::with_generator`] substitutes another. The values are those of
//! [`Tensor::rand`] and [`Tensor::randn`] (the latter up to rounding), scaled.

use crate::error::called;
use crate::rng::{self, philox};
use crate::tensor::{IntoShape, shape};
use crate::{Device, Result, Tensor, default_device, default_dtype};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Error;
use keyway_dispatcher::memory::host_vec;

/// Uniform values in `[-bound, bound)`; rounding to a narrow default dtype may produce `bound`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::init;
/// let a = init::uniform(100, 0.5)?;
/// assert!(a.to_vec::<f32>()?.iter().all(|v| (-0.5..0.5).contains(v)));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Sizes whose product overflows; a bound that is NaN or infinite.
pub fn uniform(shape: impl IntoShape, bound: f64) -> Result<Tensor> {
    called("uniform", &["shape", "bound"], || {
        check("uniform", "bound", "finite", bound, bound.is_finite())?;
        let sizes = &sizes(shape)?;
        let scaled = |word| (bound * (2.0 * f64::from(philox::uniform_f32(word)) - 1.0)) as f32;
        placed(words(sizes)?.into_iter().map(scaled).collect(), sizes)
    })
}

/// Normal values of mean 0 and this standard deviation.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::init;
/// let a = init::normal(10_000, 0.1)?.to_vec::<f32>()?;
/// let mean_square = a.iter().map(|v| v * v).sum::<f32>() / 10_000.0;
/// assert!((mean_square - 0.01).abs() < 0.001);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Sizes whose product overflows; a deviation below 0, NaN or infinite.
pub fn normal(shape: impl IntoShape, deviation: f64) -> Result<Tensor> {
    called("normal", &["shape", "deviation"], || {
        check(
            "normal",
            "deviation",
            "finite and 0 or more",
            deviation,
            deviation.is_finite() && deviation >= 0.0,
        )?;
        let sizes = &sizes(shape)?;
        let words = words(sizes)?;
        let upper = |word: u32| u64::from(word) << 32;
        let pair = |&[first, second]: &[u32; 2]| philox::normal_pair(upper(first), upper(second));
        let scaled = |number| (deviation * number) as f32;
        placed(words.as_chunks::<2>().0.iter().flat_map(pair).map(scaled).collect(), sizes)
    })
}

/// Normal values of mean 0 and this standard deviation between -2 and 2.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::init;
/// let a = init::trunc_normal(1000, 1.5)?.to_vec::<f32>()?;
/// assert!(a.iter().all(|v| v.abs() <= 2.0) && a.iter().any(|v| v.abs() > 1.0));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`trunc_normal_with`].
#[doc(alias = "trunc_normal_")]
pub fn trunc_normal(shape: impl IntoShape, deviation: f64) -> Result<Tensor> {
    trunc_normal_with(shape, 0.0, deviation, (-2.0, 2.0))
}

/// Normal values of this mean and standard deviation, conditioned on being within the bounds.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::init;
/// let a = init::trunc_normal_with(1000, 3.0, 0.1, (3.0, 3.2))?.to_vec::<f32>()?;
/// assert!(a.iter().all(|v| (3.0..=3.2).contains(v)));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Sizes whose product overflows; a mean that is not finite; a deviation that is not above 0; bounds that are not ascending.
pub fn trunc_normal_with(
    shape: impl IntoShape,
    mean: f64,
    deviation: f64,
    (low, high): (f64, f64),
) -> Result<Tensor> {
    const NAME: &str = "trunc_normal";
    called(NAME, &["shape", "mean", "deviation", "bounds"], || {
        check(NAME, "mean", "finite", mean, mean.is_finite())?;
        check(NAME, "deviation", "finite and above 0", deviation, deviation.is_finite() && deviation > 0.0)?;
        check(NAME, "bounds", "ascending", low, low < high)?;
        let sizes = &sizes(shape)?;
        let place = rng::generator::current(Device::CPU).reserve(1);
        // As of a permutation: a stream of its own, since the number of draws is random.
        let mut stream = philox::Philox::with_stream(place.seed, place.offset.wrapping_add(1));
        let bounds = ((low - mean) / deviation, (high - mean) / deviation);
        let mut values = filled(0.0f32, numel(sizes)?)?;
        for value in &mut values {
            *value = (mean + deviation * truncated(&mut stream, bounds)).clamp(low, high) as f32;
        }
        placed(values, sizes)
    })
}

/// A value of the standard normal distribution within the bounds, by rejection (C. P. Robert, "Simulation of truncated normal
/// variables", 1995).
fn truncated(stream: &mut philox::Philox, (low, high): (f64, f64)) -> f64 {
    if high < 0.0 {
        return -truncated(stream, (-high, -low));
    }
    let wide = high - low;
    loop {
        let (x, accepted) = if low <= 0.0 && wide > 2.0 {
            let x = stream.normal_pair_f64()[0];
            (x, if (low..=high).contains(&x) { 1.0 } else { 0.0 })
        } else if low <= 0.0 || wide * low < 2.0 {
            let (x, nearest) = (low + wide * stream.uniform_f64(), low.max(0.0));
            (x, ((nearest * nearest - x * x) / 2.0).exp())
        } else {
            let x = low - (-stream.uniform_f64()).ln_1p() / low;
            (x, if x <= high { (-(x - low) * (x - low) / 2.0).exp() } else { 0.0 })
        };
        if stream.uniform_f64() < accepted {
            return x;
        }
    }
}

/// A matrix with orthonormal rows or columns times `gain`: the shape's first dimension by the product of the others (A. M. Saxe,
/// J. L. McClelland, S. Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks", 2014). The
/// kernels of its QR factorization are those of the library `keyway-linalg`.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::init;
/// let a = init::orthogonal((2, 3), 1.0)?;
/// assert!(a.matmul(&a.t()?)?.allclose(&keyway::Tensor::eye(2)?)?);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Fewer than 2 dimensions; sizes whose product overflows; a missing kernel of `qr`.
#[doc(alias = "orthogonal_")]
pub fn orthogonal(shape: impl IntoShape, gain: f64) -> Result<Tensor> {
    const NAME: &str = "orthogonal";
    called(NAME, &["shape", "gain"], || {
        let sizes = &sizes(shape)?;
        let [rows, rest @ ..] = &sizes[..] else { return Err(few_dimensions(NAME, sizes)) };
        if rest.is_empty() {
            return Err(few_dimensions(NAME, sizes));
        }
        let columns = keyway_dispatcher::dims::numel(NAME, rest)?;
        let (long, short) = ((*rows).max(columns), (*rows).min(columns));
        if short == 0 {
            return placed(Vec::new(), sizes);
        }
        let (q, r) = normal((long, short), 1.0)?.to_dtype(crate::DType::F32)?.qr()?;
        // Uniformly distributed only with the signs that make the diagonal positive.
        let q = q.mul(&r.diagonal()?.sign()?)?;
        let q = if *rows < columns { q.t()? } else { q };
        q.mul(gain)?.reshape(&sizes[..])?.to_dtype(default_dtype())
    })
}

/// Normal values of mean 0 and this standard deviation in a matrix, with the fraction `sparsity` of each column set to 0, at random
/// rows.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::init;
/// let a = init::sparse((10, 3), 0.25, 0.01)?;
/// assert_eq!(a.eq(0)?.sum(0)?.to_vec::<i64>()?, [3; 3]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// A shape that is no matrix; a `sparsity` outside 0 to 1; those of [`normal`].
#[doc(alias = "sparse_")]
pub fn sparse(shape: impl IntoShape, sparsity: f64, deviation: f64) -> Result<Tensor> {
    const NAME: &str = "sparse";
    called(NAME, &["shape", "sparsity", "deviation"], || {
        check(NAME, "sparsity", "from 0 to 1", sparsity, (0.0..=1.0).contains(&sparsity))?;
        let sizes = &sizes(shape)?;
        let &[rows, columns] = &sizes[..] else { return Err(few_dimensions(NAME, sizes)) };
        let drawn = normal(&sizes[..], deviation)?;
        let zeros = (sparsity * rows as f64).ceil() as usize;
        let place = rng::generator::current(Device::CPU).reserve(1);
        let mut stream = philox::Philox::with_stream(place.seed, place.offset.wrapping_add(1));
        let mut mask = filled(false, numel(sizes)?)?;
        for column in 0..columns {
            for row in stream.permutation(rows).into_iter().take(zeros) {
                mask[row * columns + column] = true;
            }
        }
        drawn.masked_fill(&Tensor::from_vec(mask, &sizes[..])?.to_device(drawn.device())?, 0)
    })
}

fn few_dimensions(op: &'static str, sizes: &[usize]) -> crate::Error {
    let expected = if op == "sparse" { "of 2 dimensions" } else { "of 2 dimensions at least" };
    Error::Shape { op, argument: "shape", expected: expected.to_string(), got: sizes.into() }.into()
}

/// He initialization, uniform in `±sqrt(6 / fan_in)`: preserves the variance of activations through a ReLU (K. He and others,
/// "Delving deep into rectifiers", 2015).
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::init;
/// let weight = init::kaiming_uniform((10, 54))?;
/// assert!(weight.to_vec::<f32>()?.iter().all(|v| v.abs() <= 1.0 / 3.0));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Sizes whose product overflows.
pub fn kaiming_uniform(shape: impl IntoShape) -> Result<Tensor> {
    kaiming_uniform_with(shape, 0.0, Fan::In)
}

/// [`kaiming_uniform`] for a leaky ReLU of slope `a`, uniform in `±sqrt(6 / ((1 + a^2) * fan))`: preserves the variance of the
/// activations or of the gradients.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::init;
/// let weight = init::kaiming_uniform_with((10, 64), 5f64.sqrt(), init::Fan::In)?;
/// assert!(weight.to_vec::<f32>()?.iter().all(|v| v.abs() <= 0.125));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Sizes whose product overflows.
pub fn kaiming_uniform_with(shape: impl IntoShape, a: f64, fan: Fan) -> Result<Tensor> {
    called("kaiming_uniform", &["shape", "a", "fan"], || {
        let sizes = sizes(shape)?;
        uniform(&sizes[..], (6.0 / ((1.0 + a * a) * fan.of(&sizes))).sqrt())
    })
}

/// The divisor of the variance.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::init::{Fan, kaiming_normal_with};
/// // 100 inputs of each output, 10 outputs of each input: variances of 2 / 100 and 2 / 10.
/// let variance = |fan| kaiming_normal_with((10, 100), 0.0, fan)?.square()?.mean_all()?.item::<f32>();
/// assert!((variance(Fan::In)? - 0.02).abs() < 0.01);
/// assert!((variance(Fan::Out)? - 0.2).abs() < 0.1);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fan {
    /// `fan_in`, the inputs of one output: preserves the variance of the activations.
    In,
    /// `fan_out`, the outputs of one input: preserves the variance of the gradients.
    Out,
}

impl Fan {
    fn of(self, sizes: &[usize]) -> f64 {
        let (fan_in, fan_out) = fans(sizes);
        match self {
            Fan::In => fan_in,
            Fan::Out => fan_out,
        }
    }
}

/// He initialization, normal with standard deviation `sqrt(2 / fan_in)`: preserves the variance of activations through a ReLU
/// (K. He and others, "Delving deep into rectifiers", 2015).
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::init::kaiming_normal;
/// let weight = kaiming_normal((50, 100))?.to_vec::<f32>()?;
/// let mean_square = weight.iter().map(|v| v * v).sum::<f32>() / 5_000.0;
/// assert!((mean_square - 0.02).abs() < 0.002);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Sizes whose product overflows.
pub fn kaiming_normal(shape: impl IntoShape) -> Result<Tensor> {
    kaiming_normal_with(shape, 0.0, Fan::In)
}

/// [`kaiming_normal`] for a leaky ReLU of slope `a`, with standard deviation `sqrt(2 / ((1 + a^2) * fan))`: preserves the
/// variance of the activations or of the gradients.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::init::{Fan, kaiming_normal_with};
/// let weight = kaiming_normal_with((100, 50), 0.0, Fan::Out)?.to_vec::<f32>()?;
/// let mean_square = weight.iter().map(|v| v * v).sum::<f32>() / 5_000.0;
/// assert!((mean_square - 0.02).abs() < 0.002);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Sizes whose product overflows.
pub fn kaiming_normal_with(shape: impl IntoShape, a: f64, fan: Fan) -> Result<Tensor> {
    called("kaiming_normal", &["shape", "a", "fan"], || {
        let sizes = sizes(shape)?;
        normal(&sizes[..], (2.0 / ((1.0 + a * a) * fan.of(&sizes))).sqrt())
    })
}

/// Glorot initialization, uniform in `±sqrt(6 / (fan_in + fan_out))`: balances the variances of activations and gradients (X.
/// Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010).
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::init;
/// let weight = init::xavier_uniform((2, 4))?;
/// assert!(weight.to_vec::<f32>()?.iter().all(|v| v.abs() <= 1.0));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Sizes whose product overflows.
pub fn xavier_uniform(shape: impl IntoShape) -> Result<Tensor> {
    xavier_uniform_with(shape, 1.0)
}

/// [`xavier_uniform`] times `gain`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::init;
/// let weight = init::xavier_uniform_with((2, 4), 0.5)?;
/// assert!(weight.to_vec::<f32>()?.iter().all(|v| v.abs() <= 0.5));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Sizes whose product overflows.
pub fn xavier_uniform_with(shape: impl IntoShape, gain: f64) -> Result<Tensor> {
    called("xavier_uniform", &["shape", "gain"], || {
        let sizes = sizes(shape)?;
        let (fan_in, fan_out) = fans(&sizes);
        uniform(&sizes[..], gain * (6.0 / (fan_in + fan_out)).sqrt())
    })
}

/// Glorot initialization from the normal distribution of standard deviation `gain * sqrt(2 / (fan_in + fan_out))`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::init;
/// let weight = init::xavier_normal((64, 64), 1.0)?;
/// let deviation = weight.std(..)?.item::<f32>()?;
/// assert!((deviation - 0.125).abs() < 0.02);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Sizes whose product overflows.
pub fn xavier_normal(shape: impl IntoShape, gain: f64) -> Result<Tensor> {
    called("xavier_normal", &["shape", "gain"], || {
        let sizes = sizes(shape)?;
        let (fan_in, fan_out) = fans(&sizes);
        normal(&sizes[..], gain * (2.0 / (fan_in + fan_out)).sqrt())
    })
}

/// `(fan_in, fan_out)` of a weight `[out, in, window…]`.
fn fans(sizes: &[usize]) -> (f64, f64) {
    // In f64, since the product may overflow usize if one size is 0.
    let window: f64 = sizes.iter().skip(2).map(|&size| size as f64).product();
    let fan = |size: Option<&usize>| size.copied().unwrap_or(1).max(1) as f64 * window.max(1.0);
    (fan(sizes.get(1)), fan(sizes.first()))
}

/// A tensor with the same value in each element.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::init;
/// assert_eq!(init::constant(2, 0.5)?.to_vec::<f32>()?, [0.5; 2]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Sizes whose product overflows.
#[doc(alias = "constant_")]
pub fn constant(shape: impl IntoShape, value: f64) -> Result<Tensor> {
    called("constant", &["shape", "value"], || {
        let sizes = &sizes(shape)?;
        placed(filled(value as f32, numel(sizes)?)?, sizes)
    })
}

/// Refuses a value that would make the parameters unusable.
fn check(op: &'static str, argument: &'static str, expected: &str, number: f64, holds: bool) -> Result<()> {
    if holds {
        return Ok(());
    }
    Err(Error::Value { op, argument, expected: expected.to_string(), got: number.to_string() }.into())
}

fn sizes(shape: impl IntoShape) -> Result<Dims> {
    shape::sizes("init", shape)
}

fn numel(sizes: &[usize]) -> Result<usize> {
    Ok(keyway_dispatcher::dims::numel("init", sizes)?)
}

/// A vector of `count` elements on the host.
fn filled<T: Copy>(value: T, count: usize) -> Result<Vec<T>> {
    let mut all = host_vec(count)?;
    all.resize(count, value);
    Ok(all)
}

/// One word of the generator's stream per element, numbered by [`philox::element`]; the element count is rounded up to an even
/// number.
fn words(sizes: &[usize]) -> Result<Vec<u32>> {
    let mut words = filled(0, numel(sizes)?.next_multiple_of(2))?;
    let place = rng::generator::current(Device::CPU).reserve(words.len().div_ceil(4) as u64);
    philox::element::words(place.seed, place.offset, &mut words);
    Ok(words)
}

/// Moves values computed on the host to the default device and dtype.
fn placed(mut values: Vec<f32>, sizes: &[usize]) -> Result<Tensor> {
    values.truncate(numel(sizes)?);
    Tensor::from_vec(values, sizes)?.to_dtype(default_dtype())?.to_device(default_device())
}
