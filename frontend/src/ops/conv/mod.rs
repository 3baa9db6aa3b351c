//! Convolutions of one to three spatial dimensions.
//!
//! Three ops, each linear in two tensors, whose derivatives are each other: [`conv`], its gradient to the input
//! ([`conv_input_grad`], which is also the transposed convolution) and its gradient to the weight ([`conv_weight_grad`]). A
//! fourth, [`conv_act`], is the first with what follows it in networks that are used.
//! The ranks of the tensors say how many spatial dimensions there are; the methods of [`Tensor`](crate::Tensor) have one name
//! for each number, as PyTorch.

mod calls;
mod geometry;
mod options;
mod whole;

pub(crate) use calls::{batched, unbatched};
pub use conv_act::Activation;
pub(crate) use options::from_tuples;
pub use options::{ConvOptions, ConvTransposeOptions, Padding, PerDim};

crate::ops::family! {
    conv,
    conv_act,
    conv_input_grad,
    conv_weight_grad,
}
