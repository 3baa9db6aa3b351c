//! Keyway's matrix factorisations and solvers of f32, f64, c64 and c128 on the CPU, a plugin: Cholesky, LU, QR,
//! eigenvalues of Hermitian and of general matrices, singular values, triangular systems.
//!
//! Decisions:
//! - the algorithms are those of `faer`, which selects its SIMD code at run time, so one build serves every CPU level. LAPACK
//!   would be a C and Fortran dependency;
//! - a library of its own: a program without factorisations need not load three megabytes of code;
//! - a batch is split over the host's thread pool by the sizes alone. One matrix is factorised by one thread: `faer` runs in
//!   parallel on a rayon pool of its own, whose threads would compete with the host's;
//! - results are unique, so that those of two backends can be compared: the diagonal of R is real and 0 or more, and the
//!   first component of an eigenvector, or of a left singular vector, that is not negligible is real and positive. LAPACK leaves
//!   these signs and phases open;
//! - `cholesky` and `eigh` compute on `(A + Aᴴ) / 2`, whose derivative is Hermitian, as that of PyTorch is. LAPACK reads one
//!   triangle, which is the same where `A` is Hermitian;
//! - a matrix that cannot be factorised is an error that names the matrix of the batch. If several cannot, the first is named,
//!   whatever the number of threads.

mod kernels;
mod matrices;
mod memory;
mod number;
mod signs;

keyway_sdk::plugin! {
    name: "keyway-linalg",
    version: env!("CARGO_PKG_VERSION"),
    description: "Matrix factorisations and solvers on the CPU",
    devices: ["cpu"],
    layouts: ["strided"],
}
