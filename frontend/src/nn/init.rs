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
