//! Matrix and vector products.

mod added;
mod cdist;
mod cov;
mod equation;
mod kron;
mod pairwise_distance;

crate::ops::family! {
    addmm,
    baddbmm,
    bmm,
    cross,
    dot,
    einsum,
    linear,
    matmul,
    mm,
    mv,
    outer,
    tensordot,
    trace,
}
