//! Files: weights and other tensors, read and written so that a failure loses nothing.

pub mod npy;
pub mod npz;
mod replace;
pub mod safetensors;

pub use replace::replace;
