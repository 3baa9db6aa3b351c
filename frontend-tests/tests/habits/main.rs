//! Calls that users of PyTorch, candle and burn type by habit, each with its result. A call stands here as it is guessed; where ours
//! has another name, the other one is there too and names it in a warning.
#![allow(deprecated)]

mod data;
mod devices;
mod files;
mod modules;
mod names;
mod options;
mod tensors;

use keyway::Tensor;

/// The elements of a tensor of f32.
fn values(tensor: keyway::Result<Tensor>) -> Vec<f32> {
    tensor.unwrap().to_vec().unwrap()
}
