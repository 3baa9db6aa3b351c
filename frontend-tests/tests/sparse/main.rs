//! Sparse tensors, with the library that serves them. One program, for building a dozen takes a while.

mod beside_pytorch;
mod compressed_rows;
mod coordinates;
mod corners;
mod entries;
mod gradients;
mod in_place;
mod kernels;
mod large;
mod many;
mod optim;
#[path = "../rehearsal_support/mod.rs"]
mod rehearsal_support;
mod support;
mod zero;
