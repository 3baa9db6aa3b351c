//! Matrix and vector products, factorisations and solvers.

mod added;
mod cdist;
mod cov;
mod equation;
mod kron;
mod matrix;
mod pairwise_distance;

crate::ops::family! {
    addmm,
    baddbmm,
    bmm,
    cholesky,
    cross,
    dot,
    eigh,
    eigvalsh,
    einsum,
    inv,
    linear,
    lu_factor,
    lu_solve,
    matmul,
    mm,
    mv,
    outer,
    pinv,
    qr,
    solve,
    solve_triangular,
    svd,
    svdvals,
    tensordot,
    trace,
}
