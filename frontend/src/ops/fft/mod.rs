//! Fourier transforms as ops, with the names and arguments of PyTorch's. [`keyway::fft`](crate::fft) has the functions.

pub(crate) mod half_spectrum;

crate::ops::family! {
    fft_c2c,
    fft_c2r,
    fft_r2c,
}
