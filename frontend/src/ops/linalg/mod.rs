//! Matrix and vector products, factorisations and solvers.

mod added;
mod cdist;
mod cholesky_solve;
mod cov;
mod determinant;
mod equation;
mod kron;
mod lstsq;
mod lu;
mod matrix;
mod matrix_norm;
mod matrix_power;
mod pairwise_distance;
mod vander;
mod vecdot;

pub use matrix_norm::MatrixNorm;

crate::ops::family! {
    addmm,
    baddbmm,
    bmm,
    cholesky,
    cross,
    dot,
    eig,
    eigh,
    eigvals,
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
