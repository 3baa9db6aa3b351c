//! Products of matrices and vectors.

mod added;
mod equation;

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
