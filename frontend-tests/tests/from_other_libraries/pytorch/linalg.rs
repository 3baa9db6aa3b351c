//! `torch.linalg`.

use crate::table::section;
use keyway::ops::linalg::MatrixNorm;
use keyway::prelude::*;

section! {
    linalg "Factorisations and solvers"
    "a = torch.tensor([[4., 2.], [2., 10.]]); b = torch.tensor([[6., 1.], [12., 3.]]); x = torch.tensor([[1., 2.], [3., 4.], [5., 7.]])" {
        let a = Tensor::new([[4.0f32, 2.0], [2.0, 10.0]])?;
        let b = Tensor::new([[6.0f32, 1.0], [12.0, 3.0]])?;
        let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0], [5.0, 7.0]])?;
    }
    "torch.linalg.cholesky(a)" => { a.cholesky()? } "needs `keyway-linalg`, as the rows below do";
    "torch.linalg.cholesky(a, upper=True)" => { a.cholesky_with(true)? };
    "torch.cholesky_solve(b, torch.linalg.cholesky(a))" => { b.cholesky_solve(&a.cholesky()?, false)? };
    "torch.cholesky_inverse(torch.linalg.cholesky(a))" => { a.cholesky()?.cholesky_inverse(false)? };
    "torch.linalg.solve(a, b)" => { a.solve(&b)? };
    "torch.linalg.solve(a, b, left=False)" => { a.solve_with(&b, false)? };
    "torch.linalg.solve_triangular(a, b, upper=True)" => { a.solve_triangular(&b, true)? };
    "torch.linalg.inv(a)" => { a.inv()? };
    "torch.linalg.lu_factor(a)" => { { let (lu, pivots) = a.lu_factor()?; vec![lu, pivots] } };
    "torch.linalg.lu(a)" => { { let (p, l, u) = a.lu()?; vec![p, l, u] } };
    "torch.linalg.det(a)" => { a.det()? };
    "torch.linalg.slogdet(a)" => { { let (sign, log) = a.slogdet()?; vec![sign, log] } };
    "torch.logdet(a)" => { a.logdet()? };
    "torch.linalg.qr(x)[1].abs()" => { x.qr()?.1.abs()? } "the diagonal of R is 0 or more here";
    "torch.linalg.eigh(a)[1].abs()" => { a.eigh()?.1.abs()? } "the signs are fixed here";
    "torch.linalg.eigvalsh(a)" => { a.eigvalsh()? };
    "torch.linalg.eig(a)[1].abs()" => { a.eig()?.1.abs()? } "the phases are fixed here";
    "torch.linalg.eigvals(a)" => { a.eigvals()? };
    "torch.linalg.svd(x, full_matrices=False)[1]" => { x.svd_with(false)?.1 } "the signs are fixed here";
    "torch.linalg.svdvals(x)" => { x.svdvals()? };
    "torch.linalg.pinv(x)" => { x.pinv()? };
    "torch.linalg.lstsq(a, b).solution" => { a.lstsq(&b)? } "the solution alone, of least norm";
    "torch.linalg.cond(a)" => { a.cond()? };
    "torch.linalg.matrix_rank(x)" => { x.matrix_rank()? };
    "torch.linalg.matrix_norm(x)" => { x.matrix_norm()? };
    "torch.linalg.matrix_norm(x, 'nuc')" => { x.matrix_norm_with(MatrixNorm::Nuclear)? };
    "torch.linalg.matrix_norm(x, 2)" => { x.matrix_norm_with(2.0)? };
    "torch.linalg.matrix_power(a, 3)" => { a.matrix_power(3)? };
    "torch.linalg.matrix_exp(a / 10)" => { a.div(10.0)?.matrix_exp()? };
    "torch.linalg.multi_dot([x, a, b])" => { Tensor::multi_dot(&[&x, &a, &b])? };
    "torch.linalg.vander(torch.tensor([2., 3.]), N=3)" => { Tensor::new([2.0f32, 3.0])?.vander(3)? };
    "torch.linalg.householder_product(x, torch.tensor([0.5, 0.25]))" => {
        x.householder_product(&Tensor::new([0.5f32, 0.25])?)?
    };
}
