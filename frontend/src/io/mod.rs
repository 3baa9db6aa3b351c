//! Files: weights and other tensors, read and written so that a failure loses nothing.

mod replace;
pub mod safetensors;

pub use replace::replace;
