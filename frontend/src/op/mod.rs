//! What definitions of ops are made of and tensors and autograd use too: rules and flags. It knows the dispatcher alone.

pub(crate) mod flags;
mod formats;
pub mod rules;
