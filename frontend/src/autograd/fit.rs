//! The conversion of a formula's gradient to the shape, dtype and memory format of the argument.

use super::node::{Edge, Shape};
use crate::error::Result;
use crate::error::autograd::AutogradError;
use crate::{DType, Tensor};
use smallvec::SmallVec;

/// Converts a gradient to its argument's shape, dtype and memory format; broadcast dimensions are summed. The gradient of a
/// strided argument is strided; that of a sparse argument is on its pattern.
pub(crate) fn fit(op: &'static str, grad: Tensor, shape: &Shape, edge: Option<&Edge>) -> Result<Tensor> {
    let grad = if grad.shape() == shape.sizes.as_slice() { grad } else { sum_to(op, grad, shape)? };
    let grad = if shape.strided && !grad.as_ref().is_strided() { grad.to_strided()? } else { grad };
    let grad = match edge {
        Some(edge) if !edge.is_strided() => edge.on_pattern(grad)?,
        _ => grad,
    };
    shape.formatted(if grad.dtype() == shape.dtype { grad } else { cast(grad, shape.dtype)? })
}

/// Casts a gradient. That of a real argument of a complex op is the real part.
fn cast(grad: Tensor, dtype: DType) -> Result<Tensor> {
    let grad = if grad.dtype().is_complex() && !dtype.is_complex() { grad.real()? } else { grad };
    grad.to_dtype(dtype)
}

fn sum_to(op: &'static str, grad: Tensor, shape: &Shape) -> Result<Tensor> {
    let wrong = || AutogradError::GradientShape {
        op: op.to_string(),
        expected: shape.sizes.to_vec(),
        got: grad.shape().to_vec(),
    };
    let lead = grad.rank().checked_sub(shape.sizes.len()).ok_or_else(wrong)?;
    let mut dims: SmallVec<[i64; 8]> = (0..lead as i64).collect();
    for (i, &size) in shape.sizes.iter().enumerate() {
        match grad.shape()[lead + i] {
            got if got == size => {}
            _ if size == 1 => dims.push((lead + i) as i64),
            _ => return Err(wrong().into()),
        }
    }
    if !shape.strided {
        return grad.sum_keepdim(&dims)?.reshape_as_sizes(&shape.sizes);
    }
    // A gradient broadcast to coordinates may be far smaller than a strided tensor of the same sizes, so it is summed first.
    let grad = grad.as_coordinates()?;
    let grad = if grad.is_coordinates() { grad } else { grad.to_strided()? };
    grad.sum_keepdim(&dims)?.to_strided()?.reshape_as_sizes(&shape.sizes)
}
