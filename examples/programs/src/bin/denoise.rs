//! Spectral denoising: noise is removed from a signal in its short-time Fourier transform.
//!
//! Each coefficient `X` of the spectrogram is multiplied by the Wiener gain `max(0, 1 - s / |X|²)`, where `s` is the power of the noise,
//! estimated as in S. Boll, "Suppression of acoustic noise in speech using spectral subtraction" (1979) from a part without the signal.
//! It needs the library `keyway-fft`.

use keyway::fft::{self, IstftOptions, StftOptions};
use keyway::prelude::*;

/// Samples of a window, and between windows.
const WINDOW: usize = 512;
const HOP: usize = 128;

/// `samples` of silence, then as many of a tone whose frequency rises from 1/64 to 1/8 of the sampling rate.
fn chirp(samples: usize) -> keyway::Result<Tensor> {
    let n = samples as f64;
    let at = Tensor::arange_with(0, samples as i64, 1, DType::F64)?.div(n)?;
    let phase = at
        .mul(1.0 / 64.0)?
        .add(&at.square()?.mul((1.0 / 8.0 - 1.0 / 64.0) / 2.0)?)?
        .mul(std::f64::consts::TAU * n)?;
    Tensor::cat(&[Tensor::zeros_with(samples, DType::F64)?, phase.sin()?], 0)
}

/// The signal without the noise, whose first `quiet` samples are noise alone.
fn denoise(noisy: &Tensor, quiet: usize) -> keyway::Result<Tensor> {
    let window = fft::hann_window(WINDOW)?.to_dtype(DType::F64)?;
    let options = StftOptions { hop_length: Some(HOP), window: Some(&window), ..StftOptions::new(WINDOW) };
    let spectrogram = fft::stft(noisy, options)?; // [257, frames], c128
    let power = spectrogram.abs()?.square()?;
    let noise = power.narrow(1, 0, quiet / HOP - 1)?.mean_keepdim(1)?;
    // Twice the noise: single coefficients of noise exceed its mean.
    let gain = noise.mul(2.0)?.div(&power)?.neg()?.add(1.0)?.relu()?;
    let back = IstftOptions {
        hop_length: Some(HOP),
        window: Some(&window),
        length: Some(noisy.elem_count()),
        ..IstftOptions::new(WINDOW)
    };
    fft::istft(&spectrogram.mul(&gain)?, back)
}

/// The ratio of signal to error in decibels.
fn quality(signal: &Tensor, got: &Tensor) -> keyway::Result<f64> {
    let error = got.sub(signal)?.square()?.sum_all()?;
    Ok(10.0 * signal.square()?.sum_all()?.div(&error)?.item::<f64>()?.log10())
}

/// The quality before and after, for noise of half the tone's amplitude.
fn run(samples: usize) -> keyway::Result<(f64, f64)> {
    keyway::manual_seed(0);
    let signal = chirp(samples)?;
    let noisy = signal.add(&Tensor::randn_with(2 * samples, DType::F64)?.mul(0.5)?)?;
    Ok((quality(&signal, &noisy)?, quality(&signal, &denoise(&noisy, samples)?)?))
}

fn main() -> keyway::Result<()> {
    let (before, after) = run(64_000)?;
    Ok(println!("signal to noise: {before:.1} dB before, {after:.1} dB after"))
}

#[test]
fn most_of_the_noise_is_removed() -> keyway::Result<()> {
    let (before, after) = run(16_000)?;
    assert!(after > before + 8.0, "{before} dB before, {after} dB after");
    Ok(())
}
