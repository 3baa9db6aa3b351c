//! The namespace `fft`: the functions of `keyway::fft` with the arguments of `torch.fft`.

use crate::create::options;
use crate::error::OrRaise;
use crate::handle::PyTensor;
use crate::runtime;
use keyway::fft::{self as transforms, FftOptions, FftnOptions, Norm};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

fn norm(name: Option<&str>) -> PyResult<Norm> {
    match name {
        None | Some("backward") => Ok(Norm::Backward),
        Some("ortho") => Ok(Norm::Ortho),
        Some("forward") => Ok(Norm::Forward),
        Some(other) => Err(PyValueError::new_err(format!(
            "expected norm to be backward, ortho or forward, got `{other}`"
        ))),
    }
}

/// Transforms of one dimension, of the last one if none is given.
macro_rules! of_dimension {
    ($($(#[$doc:meta])* $name:ident => $call:path;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (x, n=None, dim=-1, norm=None))]
        fn $name(
            py: Python<'_>,
            x: &Bound<'_, PyTensor>,
            n: Option<usize>,
            dim: i64,
            norm: Option<&str>,
        ) -> PyResult<PyTensor> {
            let (x, options) = (&x.get().0, FftOptions { n, dim, norm: self::norm(norm)? });
            py.detach(|| $call(x, options)).or_raise().map(PyTensor)
        }
    )*};
}

of_dimension! {
    /// The transform of a dimension, cut or padded with zeros to `n` elements.
    fft => transforms::fft_with;
    /// The inverse of `fft`.
    ifft => transforms::ifft_with;
    /// The first half of the transform of a real signal, `n // 2 + 1` numbers.
    rfft => transforms::rfft_with;
    /// The inverse of `rfft`; the length is even if `n` is not given.
    irfft => transforms::irfft_with;
    /// The real transform of a signal whose second half is the conjugate of the first.
    hfft => transforms::hfft_with;
    /// The inverse of `hfft`.
    ihfft => transforms::ihfft_with;
}

/// Transforms of several dimensions.
macro_rules! of_dimensions {
    ($($(#[$doc:meta])* $name:ident => $call:path;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (x, s=None, dim=None, norm=None))]
        fn $name(
            py: Python<'_>,
            x: &Bound<'_, PyTensor>,
            s: Option<Vec<i64>>,
            dim: Option<Vec<i64>>,
            norm: Option<&str>,
        ) -> PyResult<PyTensor> {
            let (x, options) = (&x.get().0, FftnOptions { s, dim, norm: self::norm(norm)? });
            py.detach(|| $call(x, &options)).or_raise().map(PyTensor)
        }
    )*};
}

of_dimensions! {
    /// `fft` of the last two dimensions, or those of `dim`.
    fft2 => transforms::fft2_with;
    /// The inverse of `fft2`.
    ifft2 => transforms::ifft2_with;
    /// The half of `fft2` of a real signal by its last dimension.
    rfft2 => transforms::rfft2_with;
    /// The inverse of `rfft2`.
    irfft2 => transforms::irfft2_with;
    /// `hfft` of the last dimension, `fft` of the one before.
    hfft2 => transforms::hfft2_with;
    /// The inverse of `hfft2`.
    ihfft2 => transforms::ihfft2_with;
    /// `fft` of all dimensions, or those of `dim`.
    fftn => transforms::fftn_with;
    /// The inverse of `fftn`.
    ifftn => transforms::ifftn_with;
    /// The half of `fftn` of a real signal by its last dimension.
    rfftn => transforms::rfftn_with;
    /// The inverse of `rfftn`.
    irfftn => transforms::irfftn_with;
    /// `hfft` of the last dimension, `fft` of the others.
    hfftn => transforms::hfftn_with;
    /// The inverse of `hfftn`.
    ihfftn => transforms::ihfftn_with;
}

/// The frequencies of `fft` of `n` samples at distance `d`.
#[pyfunction]
#[pyo3(signature = (n, d=1.0, *, dtype=None, device=None))]
fn fftfreq(
    py: Python<'_>,
    n: usize,
    d: f64,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    runtime::start(py)?;
    transforms::fftfreq_with(n, d, options(dtype, device)?).or_raise().map(PyTensor)
}

/// The frequencies of `rfft` of `n` samples at distance `d`.
#[pyfunction]
#[pyo3(signature = (n, d=1.0, *, dtype=None, device=None))]
fn rfftfreq(
    py: Python<'_>,
    n: usize,
    d: f64,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    runtime::start(py)?;
    transforms::rfftfreq_with(n, d, options(dtype, device)?).or_raise().map(PyTensor)
}

/// The dimensions of an argument: one, several, or all of the tensor.
fn dimensions(x: &PyTensor, dim: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<i64>> {
    match dim {
        None => Ok((0..x.0.rank() as i64).collect()),
        Some(dim) => dim.extract::<i64>().map(|dim| vec![dim]).or_else(|_| dim.extract()),
    }
}

/// Moves the frequency 0 to the middle.
#[pyfunction]
#[pyo3(signature = (x, dim=None))]
fn fftshift(x: &Bound<'_, PyTensor>, dim: Option<&Bound<'_, PyAny>>) -> PyResult<PyTensor> {
    transforms::fftshift(&x.get().0, &dimensions(x.get(), dim)?[..]).or_raise().map(PyTensor)
}

/// The inverse of `fftshift`.
#[pyfunction]
#[pyo3(signature = (x, dim=None))]
fn ifftshift(x: &Bound<'_, PyTensor>, dim: Option<&Bound<'_, PyAny>>) -> PyResult<PyTensor> {
    transforms::ifftshift(&x.get().0, &dimensions(x.get(), dim)?[..]).or_raise().map(PyTensor)
}

/// The submodule of the extension module.
#[pymodule]
pub mod fourier {
    #[pymodule_export]
    use super::{
        fft, fft2, fftfreq, fftn, fftshift, hfft, hfft2, hfftn, ifft, ifft2, ifftn, ifftshift, ihfft, ihfft2,
        ihfftn, irfft, irfft2, irfftn, rfft, rfft2, rfftfreq, rfftn,
    };
}
