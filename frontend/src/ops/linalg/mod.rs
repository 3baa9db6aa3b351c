//! Products of matrices and vectors.

crate::ops::family! {
    addmm,
    baddbmm,
    bmm,
    dot,
    linear,
    matmul,
    mm,
    mv,
    outer,
}
