//! The options of the transforms, and preparing their arguments.

use crate::error::Result;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::error::Error;

/// The factor of a transform of `n` elements.
///
/// ```
/// use keyway::fft::Norm;
/// assert_eq!(Norm::default(), Norm::Backward);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Norm {
    /// The inverse transform is divided by `n`.
    #[default]
    Backward,
    /// Both directions are divided by the square root of `n`, so that they are unitary.
    Ortho,
    /// The forward transform is divided by `n`.
    Forward,
}

impl Norm {
    /// The name in an op's arguments.
    pub(super) fn name(self) -> &'static str {
        match self {
            Norm::Backward => "backward",
            Norm::Ortho => "ortho",
            Norm::Forward => "forward",
        }
    }

    /// The normalization that gives the transform in the other direction the same factor.
    pub(super) fn opposite(self) -> Norm {
        match self {
            Norm::Backward => Norm::Forward,
            Norm::Ortho => Norm::Ortho,
            Norm::Forward => Norm::Backward,
        }
    }
}

/// The options of a transform along one dimension.
///
/// ```
/// use keyway::fft::{FftOptions, Norm};
/// let options = FftOptions { norm: Norm::Ortho, ..FftOptions::default() };
/// assert_eq!((options.n, options.dim), (None, -1));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FftOptions {
    /// The length of the signal: longer ones are cropped, shorter ones padded with zeros at the end. `None` is the length of the
    /// tensor.
    pub n: Option<usize>,
    /// The dimension.
    pub dim: i64,
    /// The normalization.
    pub norm: Norm,
}

impl Default for FftOptions {
    fn default() -> FftOptions {
        FftOptions { n: None, dim: -1, norm: Norm::Backward }
    }
}

/// The options of a transform along several dimensions.
///
/// ```
/// use keyway::fft::{FftnOptions, Norm};
/// let options = FftnOptions { s: Some(vec![8, -1]), norm: Norm::Forward, ..FftnOptions::default() };
/// assert_eq!(options.dim, None);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FftnOptions {
    /// The length of the signal along each dimension, as [`FftOptions::n`]; -1 is the length of the tensor.
    pub s: Option<Vec<i64>>,
    /// The dimensions. `None` is the last two of the functions that end in 2, otherwise as many of the last ones as `s` has lengths,
    /// or all.
    pub dim: Option<Vec<i64>>,
    /// The normalization.
    pub norm: Norm,
}

/// A tensor of a dtype that has a transform: f32, f64, c64, c128. Integers, bool, f16 and bf16 become f32.
pub(super) fn inexact(x: &Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::F32 | DType::F64 => Ok(x.clone()),
        dtype if dtype.is_complex() || !dtype.is_built_in() => Ok(x.clone()),
        _ => x.to_dtype(DType::F32),
    }
}

/// [`inexact`] as complex numbers.
pub(super) fn complex(x: &Tensor) -> Result<Tensor> {
    let x = inexact(x)?;
    match x.dtype().to_complex() {
        Some(dtype) if dtype != x.dtype() => x.to_dtype(dtype),
        _ => Ok(x),
    }
}

/// [`inexact`], for functions of real signals.
///
/// # Errors
/// A complex dtype.
pub(super) fn real(op: &'static str, x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_complex() {
        let expected = "a real dtype; the transform of complex numbers is `fft`".to_string();
        return Err(Error::DType { op, argument: "x", expected, got: x.dtype() }.into());
    }
    inexact(x)
}

/// The error of an argument.
pub(super) fn wrong(op: &'static str, argument: &'static str, expected: String, got: String) -> crate::Error {
    Error::Value { op, argument, expected, got }.into()
}

/// Dimension `dim` of a tensor of one dimension or more, counted from 0.
///
/// # Errors
/// `Dim`; `Shape` for a tensor without dimensions.
pub(super) fn dimension(op: &'static str, x: &Tensor, dim: i64) -> Result<usize> {
    let at = wrap_dim(op, dim, x.rank())?;
    if x.rank() == 0 {
        let expected = "one dimension or more".to_string();
        return Err(Error::Shape { op, argument: "x", expected, got: x.shape().into() }.into());
    }
    Ok(at)
}

/// A length of 1 or more.
///
/// # Errors
/// `Value`.
pub(super) fn length(op: &'static str, argument: &'static str, n: usize) -> Result<usize> {
    match n {
        0 => Err(wrong(op, argument, "a length of 1 or more".to_string(), "0".to_string())),
        n => Ok(n),
    }
}

/// Crops or pads with zeros to these sizes along these dimensions.
pub(super) fn resized(x: &Tensor, dims: &[usize], sizes: &[usize]) -> Result<Tensor> {
    let mut made = x.clone();
    let mut widths = vec![0; 2 * x.rank()];
    for (&dim, &size) in dims.iter().zip(sizes) {
        let own = made.shape()[dim];
        if own > size {
            made = made.narrow(dim, 0, size)?;
        } else {
            // The widths begin with those of the last dimension, and have that after it in the second position.
            widths[2 * (x.rank() - 1 - dim) + 1] = i64::try_from(size - own).unwrap_or(i64::MAX);
        }
    }
    if widths.iter().any(|&width| width > 0) { made.constant_pad(&widths, 0) } else { Ok(made) }
}
