//! Transforms of Hermitian signals along several dimensions.

use super::many::{half, of_half};
use super::options::{FftnOptions, complex};
use crate::Tensor;
use crate::error::Result;

/// The transform of a Hermitian signal along the last two dimensions, from its first half along the last: `m` complex numbers
/// give `2 (m - 1)` real ones.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft};
/// assert_eq!(fft::hfft2(&Tensor::ones((2, 3, 6))?)?.shape(), [2, 3, 10]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`irfft2`](super::irfft2).
pub fn hfft2(x: &Tensor) -> Result<Tensor> {
    hfft2_with(x, &FftnOptions::default())
}

/// [`hfft2`] of these lengths, dimensions and normalization.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, FftnOptions}};
/// let options = FftnOptions { dim: Some(vec![0, 2]), ..FftnOptions::default() };
/// assert_eq!(fft::hfft2_with(&Tensor::ones((2, 3, 6))?, &options)?.shape(), [2, 3, 10]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`irfft2_with`](super::irfft2_with).
pub fn hfft2_with(x: &Tensor, options: &FftnOptions) -> Result<Tensor> {
    signal("hfft2", x, options, true)
}

/// The inverse of [`hfft2`]: the first `n / 2 + 1` elements of the inverse transform of a real signal.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft};
/// assert_eq!(fft::ihfft2(&Tensor::ones((2, 3, 10))?)?.shape(), [2, 3, 6]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`rfft2`](super::rfft2).
pub fn ihfft2(x: &Tensor) -> Result<Tensor> {
    ihfft2_with(x, &FftnOptions::default())
}

/// [`ihfft2`] of these lengths, dimensions and normalization.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, FftnOptions}};
/// let options = FftnOptions { dim: Some(vec![0, 2]), ..FftnOptions::default() };
/// assert_eq!(fft::ihfft2_with(&Tensor::ones((2, 3, 10))?, &options)?.shape(), [2, 3, 6]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`rfft2_with`](super::rfft2_with).
pub fn ihfft2_with(x: &Tensor, options: &FftnOptions) -> Result<Tensor> {
    spectrum("ihfft2", x, options, true)
}

/// [`hfft2`] along all dimensions.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft};
/// assert_eq!(fft::hfftn(&Tensor::ones((2, 3, 6))?)?.shape(), [2, 3, 10]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`irfftn`](super::irfftn).
pub fn hfftn(x: &Tensor) -> Result<Tensor> {
    hfftn_with(x, &FftnOptions::default())
}

/// [`hfftn`] of these lengths, dimensions and normalization.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, FftnOptions}};
/// let options = FftnOptions { dim: Some(vec![0, 2]), ..FftnOptions::default() };
/// assert_eq!(fft::hfftn_with(&Tensor::ones((2, 3, 6))?, &options)?.shape(), [2, 3, 10]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`irfftn_with`](super::irfftn_with).
pub fn hfftn_with(x: &Tensor, options: &FftnOptions) -> Result<Tensor> {
    signal("hfftn", x, options, false)
}

/// The inverse of [`hfftn`]: the first `n / 2 + 1` elements of the inverse transform of a real signal along the last dimension.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft};
/// assert_eq!(fft::ihfftn(&Tensor::ones((2, 3, 10))?)?.shape(), [2, 3, 6]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`rfftn`](super::rfftn).
pub fn ihfftn(x: &Tensor) -> Result<Tensor> {
    ihfftn_with(x, &FftnOptions::default())
}

/// [`ihfftn`] of these lengths, dimensions and normalization.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, FftnOptions}};
/// let options = FftnOptions { dim: Some(vec![0, 2]), ..FftnOptions::default() };
/// assert_eq!(fft::ihfftn_with(&Tensor::ones((2, 3, 10))?, &options)?.shape(), [2, 3, 6]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`rfftn_with`](super::rfftn_with).
pub fn ihfftn_with(x: &Tensor, options: &FftnOptions) -> Result<Tensor> {
    spectrum("ihfftn", x, options, false)
}

/// The options with the normalization of the opposite direction.
fn opposite(options: &FftnOptions) -> FftnOptions {
    FftnOptions { norm: options.norm.opposite(), ..options.clone() }
}

/// The transform of the conjugate as if it were a half spectrum, with the factor of the opposite direction.
fn signal(op: &'static str, x: &Tensor, options: &FftnOptions, two: bool) -> Result<Tensor> {
    of_half(op, &complex(x)?.conj()?, &opposite(options), two)
}

/// The conjugate of the first half of the transform, with the factor of the opposite direction: the inverse of [`signal`].
fn spectrum(op: &'static str, x: &Tensor, options: &FftnOptions, two: bool) -> Result<Tensor> {
    half(op, x, &opposite(options), two)?.conj()
}
