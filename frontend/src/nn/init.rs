//! Initial values of parameters, drawn on the host from a generator, so that they are the same on every device.

use crate::rng::Philox;
use crate::{Result, Tensor};

/// f32 numbers in `[-bound, bound)`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{nn::init, rng::Philox};
/// let a = init::uniform(&[100], 0.5, &mut Philox::new(0))?;
/// assert!(a.to_vec::<f32>()?.iter().all(|v| (-0.5..0.5).contains(v)));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Sizes whose product overflows.
pub fn uniform(sizes: &[usize], bound: f64, rng: &mut Philox) -> Result<Tensor> {
    from_draws(sizes, || (bound * (2.0 * f64::from(rng.uniform_f32()) - 1.0)) as f32)
}

/// f32 numbers of mean 0 and this deviation.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{nn::init, rng::Philox};
/// let a = init::normal(&[10_000], 0.1, &mut Philox::new(0))?.to_vec::<f32>()?;
/// let mean_square = a.iter().map(|v| v * v).sum::<f32>() / 10_000.0;
/// assert!((mean_square - 0.01).abs() < 0.001);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Sizes whose product overflows.
pub fn normal(sizes: &[usize], deviation: f64, rng: &mut Philox) -> Result<Tensor> {
    let mut second = None;
    from_draws(sizes, || {
        let value = second.take().unwrap_or_else(|| {
            let [first, other] = rng.normal_pair_f32();
            second = Some(other);
            first
        });
        (deviation * f64::from(value)) as f32
    })
}

/// Uniform numbers whose variance keeps that of the activations through a leaky ReLU of slope `a` (K. He and others,
/// "Delving deep into rectifiers", 2015): within `sqrt(6 / ((1 + a^2) * fan_in))`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{nn::init, rng::Philox};
/// let weight = init::kaiming_uniform(&[10, 64], 5f64.sqrt(), &mut Philox::new(0))?;
/// assert!(weight.to_vec::<f32>()?.iter().all(|v| v.abs() <= 0.125));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Sizes whose product overflows.
pub fn kaiming_uniform(sizes: &[usize], a: f64, rng: &mut Philox) -> Result<Tensor> {
    let (fan_in, _) = fans(sizes);
    uniform(sizes, (6.0 / ((1.0 + a * a) * fan_in)).sqrt(), rng)
}

/// What a variance is divided by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fan {
    /// The inputs of one output, which keeps the variance of the activations.
    In,
    /// The outputs of one input, which keeps the variance of the gradients.
    Out,
}

/// Normal numbers whose variance keeps that of the activations, or of the gradients, through a leaky ReLU of slope `a` (K. He
/// and others, "Delving deep into rectifiers", 2015): of deviation `sqrt(2 / ((1 + a^2) * fan))`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{nn::init::{Fan, kaiming_normal}, rng::Philox};
/// let weight = kaiming_normal(&[50, 100], 0.0, Fan::In, &mut Philox::new(0))?.to_vec::<f32>()?;
/// let mean_square = weight.iter().map(|v| v * v).sum::<f32>() / 5_000.0;
/// assert!((mean_square - 0.02).abs() < 0.002);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Sizes whose product overflows.
pub fn kaiming_normal(sizes: &[usize], a: f64, fan: Fan, rng: &mut Philox) -> Result<Tensor> {
    let (fan_in, fan_out) = fans(sizes);
    let fan = match fan {
        Fan::In => fan_in,
        Fan::Out => fan_out,
    };
    normal(sizes, (2.0 / ((1.0 + a * a) * fan)).sqrt(), rng)
}

/// Uniform numbers whose variance balances both directions (X. Glorot, Y. Bengio, "Understanding the difficulty of
/// training deep feedforward neural networks", 2010): within `gain * sqrt(6 / (fan_in + fan_out))`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{nn::init, rng::Philox};
/// let weight = init::xavier_uniform(&[2, 4], 1.0, &mut Philox::new(0))?;
/// assert!(weight.to_vec::<f32>()?.iter().all(|v| v.abs() <= 1.0));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Sizes whose product overflows.
pub fn xavier_uniform(sizes: &[usize], gain: f64, rng: &mut Philox) -> Result<Tensor> {
    let (fan_in, fan_out) = fans(sizes);
    uniform(sizes, gain * (6.0 / (fan_in + fan_out)).sqrt(), rng)
}

/// How many inputs one output has, and how many outputs one input: for `[out, in, window…]`.
fn fans(sizes: &[usize]) -> (f64, f64) {
    let window: usize = sizes.iter().skip(2).product();
    let fan = |size: Option<&usize>| (size.copied().unwrap_or(1).max(1) * window.max(1)) as f64;
    (fan(sizes.get(1)), fan(sizes.first()))
}

fn from_draws(sizes: &[usize], mut draw: impl FnMut() -> f32) -> Result<Tensor> {
    let count = keyway_dispatcher::dims::numel("init", sizes)?;
    Tensor::from_vec((0..count).map(|_| draw()).collect(), sizes)
}
