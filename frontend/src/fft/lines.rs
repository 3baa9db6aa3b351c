//! Transforms along one dimension.

use super::options::{FftOptions, complex, dimension, inexact, length, real, resized};
use crate::Tensor;
use crate::error::{Result, called_as};

/// The parameters in errors.
const PARAMETERS: &[&str] = &["x", "n", "dim", "norm"];
/// The op's names of arguments that these functions name otherwise.
const NAMES: &[(&str, &str)] = &[("self", "x"), ("last_dim_size", "n")];

/// The resized signal, and its dimension.
fn signal(op: &'static str, x: Tensor, options: &FftOptions) -> Result<(Tensor, usize)> {
    let at = dimension(op, &x, options.dim)?;
    match options.n {
        None => Ok((x, at)),
        Some(n) => Ok((resized(&x, &[at], &[length(op, "n", n)?])?, at)),
    }
}

/// The transform of complex or real numbers in one direction.
fn whole(op: &'static str, x: &Tensor, options: FftOptions, forward: bool) -> Result<Tensor> {
    called_as(op, PARAMETERS, NAMES, || {
        let (x, at) = signal(op, inexact(x)?, &options)?;
        let (dims, norm) = ([at as i64], options.norm);
        if x.is_complex() {
            return x.fft_c2c(&dims, norm.name(), forward);
        }
        // The inverse of a real signal is the conjugate of its transform.
        match forward {
            true => x.fft_r2c(&dims, norm.name(), false),
            false => x.fft_r2c(&dims, norm.opposite().name(), false)?.conj(),
        }
    })
}

/// The discrete Fourier transform along the last dimension: element `k` is the sum of `x[j] exp(-2 pi i j k / n)`, complex. Any
/// length takes `O(n log n)` operations.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Complex, Tensor, fft};
/// let y = fft::fft(&Tensor::new([1.0f32, 2.0])?)?;
/// assert_eq!(y.to_vec::<Complex<f32>>()?, [Complex::new(3.0, 0.0), Complex::new(-1.0, 0.0)]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// A tensor without dimensions; no elements along the dimension.
pub fn fft(x: &Tensor) -> Result<Tensor> {
    fft_with(x, FftOptions::default())
}

/// [`fft`] of this length, dimension and normalization.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, FftOptions}};
/// let y = fft::fft_with(&Tensor::ones((3, 2))?, FftOptions { n: Some(8), dim: 0, ..FftOptions::default() })?;
/// assert_eq!(y.shape(), [8, 2]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// The same; a dimension out of range; a length of 0.
pub fn fft_with(x: &Tensor, options: FftOptions) -> Result<Tensor> {
    whole("fft", x, options, true)
}

/// The inverse of [`fft`] along the last dimension.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Complex, Tensor, fft};
/// let y = fft::ifft(&Tensor::new([3.0f32, -1.0])?)?;
/// assert_eq!(y.to_vec::<Complex<f32>>()?, [Complex::new(1.0, 0.0), Complex::new(2.0, 0.0)]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`fft`].
pub fn ifft(x: &Tensor) -> Result<Tensor> {
    ifft_with(x, FftOptions::default())
}

/// [`ifft`] of this length, dimension and normalization.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, FftOptions, Norm}};
/// let options = FftOptions { norm: Norm::Ortho, ..FftOptions::default() };
/// let x = Tensor::ones(4)?;
/// let same = fft::ifft_with(&fft::fft_with(&x, options)?, options)?;
/// assert_eq!(same.shape(), x.shape());
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`fft_with`].
pub fn ifft_with(x: &Tensor, options: FftOptions) -> Result<Tensor> {
    whole("ifft", x, options, false)
}

/// The first `n / 2 + 1` elements of [`fft`] of a real signal along the last dimension; the others are their conjugates.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft};
/// assert_eq!(fft::rfft(&Tensor::ones((2, 10))?)?.shape(), [2, 6]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Complex numbers; those of [`fft`].
pub fn rfft(x: &Tensor) -> Result<Tensor> {
    rfft_with(x, FftOptions::default())
}

/// [`rfft`] of this length, dimension and normalization.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, FftOptions}};
/// let options = FftOptions { n: Some(7), ..FftOptions::default() };
/// assert_eq!(fft::rfft_with(&Tensor::ones(10)?, options)?.shape(), [4]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Complex numbers; those of [`fft_with`].
pub fn rfft_with(x: &Tensor, options: FftOptions) -> Result<Tensor> {
    called_as("rfft", PARAMETERS, NAMES, || {
        let (x, at) = signal("rfft", real("rfft", x)?, &options)?;
        x.fft_r2c(&[at as i64], options.norm.name(), true)
    })
}

/// Half a spectrum of `n / 2 + 1` elements, cropped or padded with zeros, and its real signal of `n`.
fn signal_of_half(op: &'static str, x: &Tensor, options: FftOptions) -> Result<(Tensor, usize, usize)> {
    let x = complex(x)?;
    let at = dimension(op, &x, options.dim)?;
    let n = match options.n {
        Some(n) => length(op, "n", n)?,
        None => usual(op, x.shape()[at])?,
    };
    Ok((resized(&x, &[at], &[n / 2 + 1])?, at, n))
}

/// The usual length of a signal with half a spectrum of `half` elements.
///
/// # Errors
/// Fewer than 2.
pub(super) fn usual(op: &'static str, half: usize) -> Result<usize> {
    if half < 2 {
        let expected = "2 elements or more of half a spectrum, or the length of the signal".to_string();
        return Err(super::options::wrong(op, "x", expected, half.to_string()));
    }
    Ok(2 * (half - 1))
}

/// The inverse of [`rfft`] along the last dimension, for a signal of even length: real numbers, `2 (m - 1)` from `m`.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft};
/// assert_eq!(fft::irfft(&Tensor::new([6.0f32, 0.0])?)?.to_vec::<f32>()?, [3.0, 3.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Fewer than two elements along the dimension; those of [`fft`].
pub fn irfft(x: &Tensor) -> Result<Tensor> {
    irfft_with(x, FftOptions::default())
}

/// [`irfft`] of this dimension, normalization and length of the real signal, which is needed where it is odd.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, FftOptions}};
/// let half = fft::rfft(&Tensor::ones(7)?)?;
/// let options = FftOptions { n: Some(7), ..FftOptions::default() };
/// assert_eq!(fft::irfft_with(&half, options)?.shape(), [7]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`irfft`] and [`fft_with`].
pub fn irfft_with(x: &Tensor, options: FftOptions) -> Result<Tensor> {
    called_as("irfft", PARAMETERS, NAMES, || {
        let (x, at, n) = signal_of_half("irfft", x, options)?;
        x.fft_c2r(&[at as i64], options.norm.name(), n)
    })
}

/// The transform of a Hermitian signal along the last dimension, from its first half: `m` complex numbers give `2 (m - 1)` real
/// ones.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft};
/// assert_eq!(fft::hfft(&Tensor::new([6.0f32, 0.0])?)?.to_vec::<f32>()?, [6.0, 6.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`irfft`].
pub fn hfft(x: &Tensor) -> Result<Tensor> {
    hfft_with(x, FftOptions::default())
}

/// [`hfft`] of this length of the real result, dimension and normalization.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, FftOptions}};
/// let options = FftOptions { n: Some(5), ..FftOptions::default() };
/// assert_eq!(fft::hfft_with(&Tensor::ones(3)?, options)?.shape(), [5]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`irfft_with`].
pub fn hfft_with(x: &Tensor, options: FftOptions) -> Result<Tensor> {
    called_as("hfft", PARAMETERS, NAMES, || {
        let (x, at, n) = signal_of_half("hfft", x, options)?;
        x.conj()?.fft_c2r(&[at as i64], options.norm.opposite().name(), n)
    })
}

/// The inverse of [`hfft`] along the last dimension: the first `n / 2 + 1` elements of the inverse transform of a real signal.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft};
/// assert_eq!(fft::ihfft(&Tensor::ones((2, 10))?)?.shape(), [2, 6]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`rfft`].
pub fn ihfft(x: &Tensor) -> Result<Tensor> {
    ihfft_with(x, FftOptions::default())
}

/// [`ihfft`] of this length, dimension and normalization.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, FftOptions}};
/// let options = FftOptions { dim: 0, ..FftOptions::default() };
/// assert_eq!(fft::ihfft_with(&Tensor::ones((6, 2))?, options)?.shape(), [4, 2]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`rfft_with`].
pub fn ihfft_with(x: &Tensor, options: FftOptions) -> Result<Tensor> {
    called_as("ihfft", PARAMETERS, NAMES, || {
        let (x, at) = signal("ihfft", real("ihfft", x)?, &options)?;
        x.fft_r2c(&[at as i64], options.norm.opposite().name(), true)?.conj()
    })
}
