//! Fourier transforms, with the names and arguments of PyTorch's `torch.fft` and NumPy's `numpy.fft`; windows and spectrograms.
//!
//! The kernels are those of the library `keyway-fft`; frequencies, shifts and windows need none.
//!
//! ```no_run
//! # fn main() -> keyway::Result<()> {
//! use keyway::{Tensor, fft};
//! let x = Tensor::new([1.0f32, 2.0, 3.0, 4.0])?;
//! let spectrum = fft::rfft(&x)?;
//! assert_eq!(spectrum.abs()?.shape(), [3]);
//! assert_eq!(fft::irfft(&spectrum)?.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
//! # Ok(()) }
//! ```
//!
//! Decisions:
//! - functions of a module and not methods of `Tensor`, as in both libraries: their names are short, and most programs use none;
//! - a short form, and a form that ends in `_with` and takes [`FftOptions`] or [`FftnOptions`]: length, dimension and normalization
//!   are nearly always the usual ones;
//! - f32 and f64 are transformed in their own precision; integers, bool, f16 and bf16 in f32, as in NumPy. PyTorch refuses 16-bit
//!   floats on the CPU.

mod frequencies;
mod hermitian;
mod lines;
mod many;
mod options;
mod stft;
mod windows;

pub use frequencies::{fftfreq, fftfreq_with, fftshift, ifftshift, rfftfreq, rfftfreq_with};
pub use hermitian::{hfft2, hfft2_with, hfftn, hfftn_with, ihfft2, ihfft2_with, ihfftn, ihfftn_with};
pub use lines::{
    fft, fft_with, hfft, hfft_with, ifft, ifft_with, ihfft, ihfft_with, irfft, irfft_with, rfft, rfft_with,
};
pub use many::{
    fft2, fft2_with, fftn, fftn_with, ifft2, ifft2_with, ifftn, ifftn_with, irfft2, irfft2_with, irfftn,
    irfftn_with, rfft2, rfft2_with, rfftn, rfftn_with,
};
pub use options::{FftOptions, FftnOptions, Norm};
pub use stft::{IstftOptions, StftOptions, istft, stft};
pub use windows::{
    bartlett_window, bartlett_window_with, blackman_window, blackman_window_with, hamming_window,
    hamming_window_with, hann_window, hann_window_with, kaiser_window, kaiser_window_with,
};
