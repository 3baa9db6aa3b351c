//! `torch.fft`.

use crate::table::section;
use keyway::fft::{self, FftOptions, FftnOptions, IstftOptions, Norm, StftOptions};
use keyway::prelude::*;

section! {
    fourier "Fourier transforms"
    "x = torch.arange(1., 9.); a = x.view(2, 4); h = torch.fft.rfft(x); w = torch.hann_window(4); s = torch.stft(x, 4, window=w, return_complex=True)" {
        let x = Tensor::arange(1.0, 9.0)?;
        let a = x.view((2, 4))?;
        let h = fft::rfft(&x)?;
        let w = fft::hann_window(4)?;
        let s = fft::stft(&x, StftOptions { window: Some(&w), ..StftOptions::new(4) })?;
    }
    "torch.fft.fft(x)" => { fft::fft(&x)? } "needs `keyway-fft`, as the rows below do";
    "torch.fft.fft(a, n=6, dim=0, norm='ortho')" => {
        fft::fft_with(&a, FftOptions { n: Some(6), dim: 0, norm: Norm::Ortho })?
    };
    "torch.fft.ifft(x)" => { fft::ifft(&x)? };
    "torch.fft.rfft(x).abs()" => { fft::rfft(&x)?.abs()? };
    "torch.fft.irfft(h)" => { fft::irfft(&h)? };
    "torch.fft.irfft(h, n=9)" => { fft::irfft_with(&h, FftOptions { n: Some(9), ..FftOptions::default() })? };
    "torch.fft.hfft(h)" => { fft::hfft(&h)? };
    "torch.fft.ihfft(x)" => { fft::ihfft(&x)? };
    "torch.fft.hfft2(a)" => { fft::hfft2(&a)? };
    "torch.fft.ihfft2(a)" => { fft::ihfft2(&a)? };
    "torch.fft.hfftn(a)" => { fft::hfftn(&a)? };
    "torch.fft.ihfftn(a)" => { fft::ihfftn(&a)? };
    "torch.fft.fft2(a)" => { fft::fft2(&a)? };
    "torch.fft.ifft2(a)" => { fft::ifft2(&a)? };
    "torch.fft.rfft2(a)" => { fft::rfft2(&a)? };
    "torch.fft.irfft2(a)" => { fft::irfft2(&a)? };
    "torch.fft.fftn(a)" => { fft::fftn(&a)? };
    "torch.fft.fftn(a, s=(4, 8), dim=(0, 1))" => {
        fft::fftn_with(&a, &FftnOptions { s: Some(vec![4, 8]), dim: Some(vec![0, 1]), norm: Norm::Backward })?
    };
    "torch.fft.ifftn(a)" => { fft::ifftn(&a)? };
    "torch.fft.rfftn(a)" => { fft::rfftn(&a)? };
    "torch.fft.irfftn(a)" => { fft::irfftn(&a)? };
    "torch.fft.fftfreq(8)" => { fft::fftfreq(8)? };
    "torch.fft.fftfreq(8, d=0.5)" => { fft::fftfreq_with(8, 0.5, ())? };
    "torch.fft.rfftfreq(8)" => { fft::rfftfreq(8)? };
    "torch.fft.fftshift(a)" => { fft::fftshift(&a, ..)? };
    "torch.fft.ifftshift(a, dim=1)" => { fft::ifftshift(&a, 1)? };
    "torch.hann_window(5)" => { fft::hann_window(5)? };
    "torch.hann_window(5, periodic=False)" => { fft::hann_window_with(5, false, ())? };
    "torch.hamming_window(5)" => { fft::hamming_window(5)? };
    "torch.blackman_window(5)" => { fft::blackman_window(5)? };
    "torch.bartlett_window(5)" => { fft::bartlett_window(5)? };
    "torch.kaiser_window(5)" => { fft::kaiser_window(5)? };
    "torch.stft(x, 4, hop_length=2, window=w, return_complex=True)" => {
        fft::stft(&x, StftOptions { hop_length: Some(2), window: Some(&w), ..StftOptions::new(4) })?
    };
    "torch.istft(s, 4, window=w)" => { fft::istft(&s, IstftOptions { window: Some(&w), ..IstftOptions::new(4) })? };
}
