//! The kernels, one module for each kind of op.

mod conv;
mod norm;
mod shuffle;
