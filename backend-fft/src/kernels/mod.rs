//! The kernels, one file for each op.

mod fft_c2c;
mod fft_c2r;
mod fft_r2c;
mod lines;
mod options;
