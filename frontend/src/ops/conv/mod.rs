//! Convolutions of one to three spatial dimensions.
//!
//! Three ops, each linear in two tensors, are each other's derivatives: [`conv`], its gradient with respect to the input
//! ([`conv_input_grad`], which is also the transposed convolution) and its gradient with respect to the weight
//! ([`conv_weight_grad`]). A fourth, [`conv_act`], fuses the convolution with the addition and activation that follow it in
//! inference. The ranks of the tensors determine the number of spatial dimensions; [`Tensor`](crate::Tensor) has one method for
//! each number, as in PyTorch.

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
