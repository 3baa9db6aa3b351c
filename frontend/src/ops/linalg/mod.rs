//! Products of matrices and vectors.

mod added;
mod equation;

crate::ops::family! {
    addmm,
    baddbmm,
    bmm,
    cross,
    dot,
    einsum,
    kron,
    linear,
    matmul,
    mm,
    mv,
    outer,
    tensordot,
    trace,
}
