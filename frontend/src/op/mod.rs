//! Parts of op definitions that tensors and autograd also use: rules and flags. Depends only on the dispatcher.

pub(crate) mod flags;
mod formats;
pub mod rules;
