//! The kernels, one module for each kind of op.

mod conv;
mod image;
mod norm;
mod shuffle;
