//! Window functions, computed on the host in f64 and rounded once.

use super::frequencies::of_host;
use super::options::wrong;
use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::composite::collected;
use crate::tensor::IntoOptions;
use std::f64::consts::PI;

/// The parameters in errors.
const PARAMETERS: &[&str] = &["window_length", "periodic", "alpha", "beta", "options"];

/// A window of `n` elements from its function of `i / (m - 1)`, where a symmetric window has `m` elements: `n`, or `n + 1` of a
/// periodic one, whose last element is left out.
fn window(
    op: &'static str,
    n: usize,
    periodic: bool,
    options: impl IntoOptions,
    function: impl Fn(f64) -> f64,
) -> Result<Tensor> {
    called(op, PARAMETERS, || {
        let last = if periodic { n } else { n.saturating_sub(1) };
        let value = |i: usize| if n == 1 { 1.0 } else { function(i as f64 / last as f64) };
        of_host(op, collected(n, (0..n).map(value))?, options)
    })
}

/// The periodic Hann window of the default dtype: `0.5 - 0.5 cos(2 pi i / n)`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::fft;
/// assert_eq!(fft::hann_window(4)?.to_vec::<f32>()?, [0.0, 0.5, 1.0, 0.5]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Memory that does not suffice.
pub fn hann_window(window_length: usize) -> Result<Tensor> {
    hann_window_with(window_length, true, ())
}

/// [`hann_window`] that is periodic or symmetric, with an optional dtype and device.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, fft};
/// assert_eq!(fft::hann_window_with(3, false, DType::F64)?.to_vec::<f64>()?, [0.0, 1.0, 0.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// The same; a dtype that is not a float.
pub fn hann_window_with(window_length: usize, periodic: bool, options: impl IntoOptions) -> Result<Tensor> {
    // The square of the sine is exactly 0 at both ends.
    window("hann_window", window_length, periodic, options, |t| sine(t).powi(2))
}

/// `sin(pi t)` for `t` in `[0, 1]`, symmetric.
fn sine(t: f64) -> f64 {
    (PI * if t > 0.5 { 1.0 - t } else { t }).sin()
}

/// The periodic Hamming window of the default dtype: `0.54 - 0.46 cos(2 pi i / n)`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::fft;
/// assert_eq!(fft::hamming_window(2)?.to_vec::<f32>()?, [0.08, 1.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`hann_window`].
pub fn hamming_window(window_length: usize) -> Result<Tensor> {
    hamming_window_with(window_length, true, 0.54, 0.46, ())
}

/// [`hamming_window`] that is periodic or symmetric, `alpha - beta cos(2 pi i / n)`, with an optional dtype and device.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::fft;
/// assert_eq!(fft::hamming_window_with(3, false, 0.5, 0.25, ())?.to_vec::<f32>()?, [0.25, 0.75, 0.25]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`hann_window_with`].
pub fn hamming_window_with(
    window_length: usize,
    periodic: bool,
    alpha: f64,
    beta: f64,
    options: impl IntoOptions,
) -> Result<Tensor> {
    window("hamming_window", window_length, periodic, options, |t| {
        (alpha - beta) + 2.0 * beta * sine(t).powi(2)
    })
}

/// The periodic Blackman window of the default dtype: `0.42 - 0.5 cos(2 pi i / n) + 0.08 cos(4 pi i / n)`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::fft;
/// assert_eq!(fft::blackman_window(2)?.to_vec::<f32>()?, [0.0, 1.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`hann_window`].
pub fn blackman_window(window_length: usize) -> Result<Tensor> {
    blackman_window_with(window_length, true, ())
}

/// [`blackman_window`] that is periodic or symmetric, with an optional dtype and device.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::fft;
/// assert_eq!(fft::blackman_window_with(3, false, ())?.to_vec::<f32>()?, [0.0, 1.0, 0.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`hann_window_with`].
pub fn blackman_window_with(
    window_length: usize,
    periodic: bool,
    options: impl IntoOptions,
) -> Result<Tensor> {
    window("blackman_window", window_length, periodic, options, |t| {
        // In powers of the squared sine `s`: `cos(2 pi t) = 1 - 2 s` and `cos(4 pi t) = 1 - 8 s + 8 s^2`.
        let s = sine(t).powi(2);
        0.36 * s + 0.64 * s * s
    })
}

/// The periodic Bartlett (triangular) window of the default dtype.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::fft;
/// assert_eq!(fft::bartlett_window(4)?.to_vec::<f32>()?, [0.0, 0.5, 1.0, 0.5]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`hann_window`].
pub fn bartlett_window(window_length: usize) -> Result<Tensor> {
    bartlett_window_with(window_length, true, ())
}

/// [`bartlett_window`] that is periodic or symmetric, with an optional dtype and device.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::fft;
/// assert_eq!(fft::bartlett_window_with(3, false, ())?.to_vec::<f32>()?, [0.0, 1.0, 0.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`hann_window_with`].
pub fn bartlett_window_with(
    window_length: usize,
    periodic: bool,
    options: impl IntoOptions,
) -> Result<Tensor> {
    window("bartlett_window", window_length, periodic, options, |t| 1.0 - (2.0 * t - 1.0).abs())
}

/// The periodic Kaiser window of the default dtype with `beta` 12: `I0(beta sqrt(1 - (2 i / n - 1)^2)) / I0(beta)`, where `I0` is the
/// modified Bessel function of order 0.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::fft;
/// let window = fft::kaiser_window(4)?.to_vec::<f32>()?;
/// assert_eq!((window[2], window[1]), (1.0, window[3]));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`hann_window`].
pub fn kaiser_window(window_length: usize) -> Result<Tensor> {
    kaiser_window_with(window_length, true, 12.0, ())
}

/// [`kaiser_window`] that is periodic or symmetric, of this `beta`, with an optional dtype and device.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::fft;
/// assert_eq!(fft::kaiser_window_with(3, false, 0.0, ())?.to_vec::<f32>()?, [1.0, 1.0, 1.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`hann_window_with`]; a `beta` whose absolute value is above 700.
pub fn kaiser_window_with(
    window_length: usize,
    periodic: bool,
    beta: f64,
    options: impl IntoOptions,
) -> Result<Tensor> {
    // `I0` of larger arguments exceeds the range of f64.
    if !(-700.0..=700.0).contains(&beta) {
        let expected = "a number from -700 to 700".to_string();
        return Err(wrong("kaiser_window", "beta", expected, beta.to_string()));
    }
    let whole = bessel(beta);
    window("kaiser_window", window_length, periodic, options, |t| {
        // `1 - (2 t - 1)^2`, without cancellation at the ends.
        bessel(beta * (4.0 * t * (1.0 - t)).max(0.0).sqrt()) / whole
    })
}

/// `I0(x)`, by its power series (M. Abramowitz and I. Stegun, "Handbook of mathematical functions", 9.6.10), whose terms are all
/// positive.
fn bessel(x: f64) -> f64 {
    let square = x * x / 4.0;
    let (mut sum, mut term, mut k) = (1.0, 1.0, 1.0);
    while term > sum * (f64::EPSILON / 4.0) {
        term *= square / (k * k);
        sum += term;
        k += 1.0;
    }
    sum
}
