//! Products of matrices and vectors.

mod added;

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
