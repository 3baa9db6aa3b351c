//! Transforms along several dimensions.

use super::lines::usual;
use super::options::{FftnOptions, complex, dimension, inexact, length, real, resized, wrong};
use crate::Tensor;
use crate::error::{Result, called_as};

/// The parameters in errors.
const PARAMETERS: &[&str] = &["x", "s", "dim", "norm"];
/// The op's names of arguments that these functions name otherwise.
const NAMES: &[(&str, &str)] = &[("self", "x"), ("last_dim_size", "s")];

/// The dimensions of a transform, counted from 0, and the length of the signal along each, if given.
struct Axes {
    dims: Vec<usize>,
    sizes: Vec<Option<usize>>,
}

impl Axes {
    fn of(op: &'static str, x: &Tensor, options: &FftnOptions, two: bool) -> Result<Axes> {
        let rank = x.rank();
        let dims = match (&options.dim, &options.s) {
            (Some(dims), _) => dims.clone(),
            (None, _) if two => vec![-2, -1],
            (None, Some(sizes)) if sizes.len() > rank => {
                let expected = format!("at most {rank} lengths, one for each dimension");
                return Err(wrong(op, "s", expected, format!("{sizes:?}")));
            }
            (None, Some(sizes)) => (-(sizes.len() as i64)..0).collect(),
            (None, None) => (-(rank as i64)..0).collect(),
        };
        let dims = dims.into_iter().map(|dim| dimension(op, x, dim)).collect::<Result<Vec<_>>>()?;
        let sizes = match &options.s {
            None => vec![None; dims.len()],
            Some(sizes) if sizes.len() != dims.len() => {
                let expected = format!("{} lengths, one for each dimension", dims.len());
                return Err(wrong(op, "s", expected, format!("{sizes:?}")));
            }
            Some(sizes) => sizes.iter().map(|&size| checked(op, size)).collect::<Result<_>>()?,
        };
        // Before a dimension is resized twice.
        if dims.iter().enumerate().any(|(i, dim)| dims[..i].contains(dim)) {
            return Err(wrong(op, "dim", "different dimensions".to_string(), format!("{dims:?}")));
        }
        Ok(Axes { dims, sizes })
    }

    /// The dimensions as an argument.
    fn ints(&self) -> Vec<i64> {
        self.dims.iter().map(|&dim| dim as i64).collect()
    }

    /// The resized signal.
    fn signal(&self, x: &Tensor) -> Result<Tensor> {
        let sizes: Vec<usize> =
            self.dims.iter().zip(&self.sizes).map(|(&dim, size)| size.unwrap_or(x.shape()[dim])).collect();
        resized(x, &self.dims, &sizes)
    }
}

/// A length in `s`.
fn checked(op: &'static str, size: i64) -> Result<Option<usize>> {
    match size {
        -1 => Ok(None),
        size => match usize::try_from(size) {
            Ok(size) => length(op, "s", size).map(Some),
            Err(_) => Err(wrong(op, "s", "lengths of 1 or more, or -1".to_string(), size.to_string())),
        },
    }
}

/// The transform of complex or real numbers in one direction.
fn whole(op: &'static str, x: &Tensor, options: &FftnOptions, two: bool, forward: bool) -> Result<Tensor> {
    called_as(op, PARAMETERS, NAMES, || {
        let x = inexact(x)?;
        let axes = Axes::of(op, &x, options, two)?;
        let (x, dims, norm) = (axes.signal(&x)?, axes.ints(), options.norm);
        if x.is_complex() || dims.is_empty() {
            return complex(&x)?.fft_c2c(&dims, norm.name(), forward);
        }
        // The inverse of a real signal is the conjugate of its transform.
        match forward {
            true => x.fft_r2c(&dims, norm.name(), false),
            false => x.fft_r2c(&dims, norm.opposite().name(), false)?.conj(),
        }
    })
}

/// The first half of the transform of a real signal.
pub(super) fn half(op: &'static str, x: &Tensor, options: &FftnOptions, two: bool) -> Result<Tensor> {
    called_as(op, PARAMETERS, NAMES, || {
        let x = real(op, x)?;
        let axes = Axes::of(op, &x, options, two)?;
        axes.signal(&x)?.fft_r2c(&axes.ints(), options.norm.name(), true)
    })
}

/// The real signal of half a spectrum.
pub(super) fn of_half(op: &'static str, x: &Tensor, options: &FftnOptions, two: bool) -> Result<Tensor> {
    called_as(op, PARAMETERS, NAMES, || {
        let x = complex(x)?;
        let mut axes = Axes::of(op, &x, options, two)?;
        let (Some(&last), Some(size)) = (axes.dims.last(), axes.sizes.last_mut()) else {
            return x.fft_c2r(&[], options.norm.name(), 1);
        };
        let n = match *size {
            Some(n) => n,
            None => usual(op, x.shape()[last])?,
        };
        *size = Some(n / 2 + 1);
        axes.signal(&x)?.fft_c2r(&axes.ints(), options.norm.name(), n)
    })
}

/// [`fft`](super::fft) along the last two dimensions, such as of images.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft};
/// assert_eq!(fft::fft2(&Tensor::ones((2, 3, 4))?)?.shape(), [2, 3, 4]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Fewer than two dimensions; no elements along one of them.
pub fn fft2(x: &Tensor) -> Result<Tensor> {
    fft2_with(x, &FftnOptions::default())
}

/// [`fft2`] of these lengths, dimensions and normalization.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, FftnOptions}};
/// let options = FftnOptions { s: Some(vec![8, -1]), ..FftnOptions::default() };
/// assert_eq!(fft::fft2_with(&Tensor::ones((2, 3, 4))?, &options)?.shape(), [2, 8, 4]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`fftn_with`].
pub fn fft2_with(x: &Tensor, options: &FftnOptions) -> Result<Tensor> {
    whole("fft2", x, options, true, true)
}

/// The inverse of [`fft2`].
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft};
/// let x = Tensor::ones((3, 4))?;
/// assert_eq!(fft::ifft2(&fft::fft2(&x)?)?.shape(), x.shape());
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`fft2`].
pub fn ifft2(x: &Tensor) -> Result<Tensor> {
    ifft2_with(x, &FftnOptions::default())
}

/// [`ifft2`] of these lengths, dimensions and normalization.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, FftnOptions}};
/// let options = FftnOptions { s: Some(vec![8, -1]), ..FftnOptions::default() };
/// assert_eq!(fft::ifft2_with(&Tensor::ones((3, 4))?, &options)?.shape(), [8, 4]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`fftn_with`].
pub fn ifft2_with(x: &Tensor, options: &FftnOptions) -> Result<Tensor> {
    whole("ifft2", x, options, true, false)
}

/// The first half of [`fft2`] of real numbers along the last dimension: `n / 2 + 1` elements.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft};
/// assert_eq!(fft::rfft2(&Tensor::ones((3, 10))?)?.shape(), [3, 6]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Complex numbers; those of [`fft2`].
pub fn rfft2(x: &Tensor) -> Result<Tensor> {
    rfft2_with(x, &FftnOptions::default())
}

/// [`rfft2`] of these lengths, dimensions and normalization.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, FftnOptions}};
/// let options = FftnOptions { s: Some(vec![8, -1]), ..FftnOptions::default() };
/// assert_eq!(fft::rfft2_with(&Tensor::ones((3, 10))?, &options)?.shape(), [8, 6]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Complex numbers; those of [`fftn_with`].
pub fn rfft2_with(x: &Tensor, options: &FftnOptions) -> Result<Tensor> {
    half("rfft2", x, options, true)
}

/// The inverse of [`rfft2`], for a signal of even length along the last dimension.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft};
/// assert_eq!(fft::irfft2(&Tensor::ones((3, 6))?)?.shape(), [3, 10]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Fewer than two elements along the last dimension; those of [`fft2`].
pub fn irfft2(x: &Tensor) -> Result<Tensor> {
    irfft2_with(x, &FftnOptions::default())
}

/// [`irfft2`] of these lengths, dimensions and normalization.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, FftnOptions}};
/// let options = FftnOptions { s: Some(vec![-1, 9]), ..FftnOptions::default() };
/// assert_eq!(fft::irfft2_with(&Tensor::ones((3, 5))?, &options)?.shape(), [3, 9]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`irfft2`] and [`fftn_with`].
pub fn irfft2_with(x: &Tensor, options: &FftnOptions) -> Result<Tensor> {
    of_half("irfft2", x, options, true)
}

/// [`fft`](super::fft) along all dimensions.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft};
/// assert_eq!(fft::fftn(&Tensor::ones((2, 3, 4))?)?.shape(), [2, 3, 4]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// No elements along a dimension.
pub fn fftn(x: &Tensor) -> Result<Tensor> {
    fftn_with(x, &FftnOptions::default())
}

/// [`fftn`] of these lengths, dimensions and normalization.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, FftnOptions}};
/// let options = FftnOptions { dim: Some(vec![0, 2]), ..FftnOptions::default() };
/// assert_eq!(fft::fftn_with(&Tensor::ones((2, 3, 4))?, &options)?.shape(), [2, 3, 4]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// The same; a dimension out of range or named twice; another number of lengths than of dimensions; a length of 0.
pub fn fftn_with(x: &Tensor, options: &FftnOptions) -> Result<Tensor> {
    whole("fftn", x, options, false, true)
}

/// The inverse of [`fftn`].
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft};
/// let x = Tensor::ones((2, 3, 4))?;
/// assert_eq!(fft::ifftn(&fft::fftn(&x)?)?.shape(), x.shape());
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`fftn`].
pub fn ifftn(x: &Tensor) -> Result<Tensor> {
    ifftn_with(x, &FftnOptions::default())
}

/// [`ifftn`] of these lengths, dimensions and normalization.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, FftnOptions}};
/// let options = FftnOptions { dim: Some(vec![0, 2]), ..FftnOptions::default() };
/// assert_eq!(fft::ifftn_with(&Tensor::ones((2, 3, 4))?, &options)?.shape(), [2, 3, 4]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`fftn_with`].
pub fn ifftn_with(x: &Tensor, options: &FftnOptions) -> Result<Tensor> {
    whole("ifftn", x, options, false, false)
}

/// The first half of [`fftn`] of real numbers along the last dimension: `n / 2 + 1` elements.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft};
/// assert_eq!(fft::rfftn(&Tensor::ones((2, 3, 10))?)?.shape(), [2, 3, 6]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Complex numbers; no dimension; those of [`fftn`].
pub fn rfftn(x: &Tensor) -> Result<Tensor> {
    rfftn_with(x, &FftnOptions::default())
}

/// [`rfftn`] of these lengths, dimensions and normalization.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, FftnOptions}};
/// let options = FftnOptions { dim: Some(vec![0, 2]), ..FftnOptions::default() };
/// assert_eq!(fft::rfftn_with(&Tensor::ones((2, 3, 10))?, &options)?.shape(), [2, 3, 6]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Complex numbers; no dimension; those of [`fftn_with`].
pub fn rfftn_with(x: &Tensor, options: &FftnOptions) -> Result<Tensor> {
    half("rfftn", x, options, false)
}

/// The inverse of [`rfftn`], for a signal of even length along the last dimension.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft};
/// assert_eq!(fft::irfftn(&Tensor::ones((2, 3, 6))?)?.shape(), [2, 3, 10]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Fewer than two elements along the last dimension; no dimension; those of [`fftn`].
pub fn irfftn(x: &Tensor) -> Result<Tensor> {
    irfftn_with(x, &FftnOptions::default())
}

/// [`irfftn`] of these lengths, dimensions and normalization.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, FftnOptions}};
/// let options = FftnOptions { dim: Some(vec![0, 2]), ..FftnOptions::default() };
/// assert_eq!(fft::irfftn_with(&Tensor::ones((2, 3, 6))?, &options)?.shape(), [2, 3, 10]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`irfftn`] and [`fftn_with`].
pub fn irfftn_with(x: &Tensor, options: &FftnOptions) -> Result<Tensor> {
    of_half("irfftn", x, options, false)
}
