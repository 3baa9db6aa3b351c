//! Products of matrices and vectors.

mod added;
mod equation;

use crate::Tensor;
use crate::error::Result;

crate::ops::family! {
    addmm,
    baddbmm,
    bmm,
    dot,
    einsum,
    linear,
    matmul,
    mm,
    mv,
    outer,
    tensordot,
}

/// The sum over dimensions in the tensor's own dtype, as products have it; `sum` alone widens integers.
fn summed(t: &Tensor, dims: &[i64], keepdim: bool) -> Result<Tensor> {
    t.sum_dims(dims, keepdim)?.to_dtype(t.dtype())
}
