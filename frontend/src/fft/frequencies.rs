//! Frequencies of the elements of a spectrum, and shifts of the zero frequency.

use super::options::{dimension, wrong};
use crate::Tensor;
use crate::error::{Result, called, called_as};
use crate::ops::composite::collected;
use crate::tensor::{IntoDims, IntoOptions, TensorOptions};

/// Values computed on the host, as a tensor.
pub(super) fn of_host(op: &'static str, values: Vec<f64>, options: impl IntoOptions) -> Result<Tensor> {
    let options: TensorOptions = options.into_options()?;
    let dtype = options.dtype();
    if !dtype.is_float() {
        let expected = "a floating-point dtype".to_string();
        return Err(wrong(op, "options", expected, dtype.to_string()));
    }
    let count = values.len();
    Tensor::from_vec(values, count)?.to_dtype(dtype)?.to_device(options.device())
}

/// Multiples of `1 / (n d)`.
fn multiples(
    op: &'static str,
    n: usize,
    d: f64,
    options: impl IntoOptions,
    indices: impl Iterator<Item = i64>,
    count: usize,
) -> Result<Tensor> {
    called(op, &["n", "d", "options"], || {
        if !d.is_finite() || d == 0.0 {
            return Err(wrong(op, "d", "a finite number other than 0".to_string(), d.to_string()));
        }
        let step = 1.0 / (n as f64 * d);
        of_host(op, collected(count, indices.map(|k| k as f64 * step))?, options)
    })
}

/// The frequencies of the elements of [`fft`](super::fft) in cycles per sample: `0, 1, .., -1` over `n`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::fft;
/// assert_eq!(fft::fftfreq(4)?.to_vec::<f32>()?, [0.0, 0.25, -0.5, -0.25]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Memory that does not suffice.
pub fn fftfreq(n: usize) -> Result<Tensor> {
    fftfreq_with(n, 1.0, ())
}

/// [`fftfreq`] of samples at intervals of `d`, with an optional dtype and device.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, fft};
/// // Hz, of samples every tenth of a second.
/// assert_eq!(fft::fftfreq_with(5, 0.1, DType::F64)?.to_vec::<f64>()?, [0.0, 2.0, 4.0, -4.0, -2.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// The same; an interval of 0 or one that is not finite; a dtype that is not a float.
pub fn fftfreq_with(n: usize, d: f64, options: impl IntoOptions) -> Result<Tensor> {
    let len = n as i64;
    let indices = (0..(len + 1) / 2).chain(-(len / 2)..0);
    multiples("fftfreq", n, d, options, indices, n)
}

/// The frequencies of the elements of [`rfft`](super::rfft) of `n` samples in cycles per sample.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::fft;
/// assert_eq!(fft::rfftfreq(4)?.to_vec::<f32>()?, [0.0, 0.25, 0.5]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`fftfreq`]; no samples.
pub fn rfftfreq(n: usize) -> Result<Tensor> {
    rfftfreq_with(n, 1.0, ())
}

/// [`rfftfreq`] of samples at intervals of `d`, with an optional dtype and device.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{DType, fft};
/// assert_eq!(fft::rfftfreq_with(5, 0.1, DType::F64)?.to_vec::<f64>()?, [0.0, 2.0, 4.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`fftfreq_with`]; no samples.
pub fn rfftfreq_with(n: usize, d: f64, options: impl IntoOptions) -> Result<Tensor> {
    if n == 0 {
        return Err(wrong("rfftfreq", "n", "1 or more".to_string(), "0".to_string()));
    }
    multiples("rfftfreq", n, d, options, 0..=(n / 2) as i64, n / 2 + 1)
}

/// Rolls dimensions, all if there are none, by a function of their size.
fn shifted(op: &'static str, x: &Tensor, dims: impl IntoDims, by: fn(usize) -> usize) -> Result<Tensor> {
    called_as(op, &["x", "dims"], &[("self", "x")], || {
        let dims = dims.into_dims();
        let dims = match dims.is_empty() {
            true => (0..x.rank()).collect(),
            false => dims.iter().map(|&dim| dimension(op, x, dim)).collect::<Result<Vec<_>>>()?,
        };
        if dims.is_empty() {
            return Ok(x.clone());
        }
        let shifts: Vec<usize> = dims.iter().map(|&dim| by(x.shape()[dim])).collect();
        x.roll(&shifts, &dims)
    })
}

/// Moves the zero frequency of a spectrum to the centre of the dimensions `dims`; `..` are all.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::fft;
/// assert_eq!(fft::fftshift(&fft::fftfreq(4)?, ..)?.to_vec::<f32>()?, [-0.5, -0.25, 0.0, 0.25]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// A dimension out of range.
pub fn fftshift(x: &Tensor, dims: impl IntoDims) -> Result<Tensor> {
    shifted("fftshift", x, dims, |size| size / 2)
}

/// The inverse of [`fftshift`], which differs from it for odd sizes.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::fft;
/// let frequencies = fft::fftfreq(5)?;
/// let same = fft::ifftshift(&fft::fftshift(&frequencies, 0)?, 0)?;
/// assert_eq!(same.to_vec::<f32>()?, frequencies.to_vec::<f32>()?);
/// # Ok(()) }
/// ```
///
/// # Errors
/// A dimension out of range.
pub fn ifftshift(x: &Tensor, dims: impl IntoDims) -> Result<Tensor> {
    shifted("ifftshift", x, dims, |size| size.div_ceil(2))
}
