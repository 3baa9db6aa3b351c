//! Files.
pub mod safetensors;
