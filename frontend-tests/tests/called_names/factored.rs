//! Factorisations and solvers: the errors that come before any kernel is needed.

use super::{Call, Table, f, l};
use keyway::Tensor;

pub fn factored() -> Table {
    table! {
        lu: f(&[2]).lu(), l(&[2, 2]).lu();
        det: f(&[2, 3]).det(), f(&[2]).det(), l(&[2, 2]).det();
        slogdet: f(&[2, 3]).slogdet(), l(&[2, 2]).slogdet();
        logdet: f(&[2, 3]).logdet(), l(&[2, 2]).logdet();
        solve: f(&[2, 2]).solve(&f(&[3])), f(&[2]).solve(&f(&[2])), f(&[2, 2]).solve(&l(&[2, 1]));
        cholesky_solve: f(&[2, 1]).cholesky_solve(&f(&[3, 2]), false), f(&[2, 1]).cholesky_solve(&f(&[3, 3]), true),
            f(&[2]).cholesky_solve(&f(&[2, 2]), false);
        cholesky_inverse: f(&[2, 3]).cholesky_inverse(false), f(&[]).cholesky_inverse(false), l(&[2, 2]).cholesky_inverse(true);
        lstsq: f(&[2]).lstsq(&f(&[2])), l(&[2, 2]).lstsq(&f(&[2]));
        matrix_norm: f(&[2]).matrix_norm(), l(&[2, 2]).matrix_norm(), f(&[2, 2]).matrix_norm_with(3.0),
            f(&[0, 0]).matrix_norm_with(1.0), l(&[2, 2]).matrix_norm_with(2.0);
        cond: f(&[2]).cond(), l(&[2, 2]).cond(), f(&[2, 3]).cond_with(1.0);
        matrix_rank: f(&[2]).matrix_rank(), l(&[2, 2]).matrix_rank_with(0.0, 0.0);
        matrix_power: f(&[2, 3]).matrix_power(2), f(&[2]).matrix_power(0), l(&[2, 2]).matrix_power(-1);
        matrix_exp: f(&[2, 3]).matrix_exp(), l(&[2, 2]).matrix_exp();
        multi_dot: Tensor::multi_dot(&[f(&[2, 3])]), Tensor::multi_dot(&[f(&[2, 3]), f(&[2, 3])]),
            Tensor::multi_dot(&[f(&[2, 3]), f(&[3]), f(&[3, 1])]);
        vander: f(&[]).vander(2);
        householder_product: f(&[2, 3]).householder_product(&f(&[1])), f(&[3, 2]).householder_product(&f(&[3])),
            f(&[3, 2]).householder_product(&f(&[1, 2]));
    }
}
