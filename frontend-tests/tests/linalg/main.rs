//! Factorisations and solvers: what the factors multiply to, the functions that only call ops, gradients through them, sizes 0
//! and 1, strides, and bad input.

mod complex;
mod eig;
#[path = "../rehearsal_support/mod.rs"]
mod rehearsal_support;

use keyway::autograd::gradcheck::{Tolerance, gradcheck, gradgradcheck};
use keyway::ops::linalg::MatrixNorm;
use keyway::prelude::*;
use keyway::{Result, no_grad};
use rehearsal_support::{assert_close, load, message};

const PLUGINS: &[&str] = &["keyway_backend_linalg"];

/// Fixed values without a pattern, between -1 and 1.
fn values(sizes: &[usize]) -> Tensor {
    let count = sizes.iter().product::<usize>();
    let value = |i: usize| ((i * i * 37 + i * 101 + 13) % 199) as f64 / 99.5 - 1.0;
    Tensor::from_vec((0..count).map(value).collect(), sizes).unwrap()
}

/// The same, with `n` added to the diagonal.
fn definite(sizes: &[usize]) -> Tensor {
    let n = sizes[sizes.len() - 1];
    let one = Tensor::eye_with(n, n, DType::F64).unwrap();
    values(sizes).add(&one.mul(n as f64).unwrap()).unwrap()
}

fn t(x: &Tensor) -> Tensor {
    x.transpose(-2, -1).unwrap()
}

#[track_caller]
fn assert_same(got: &Tensor, wanted: &Tensor, tolerance: f64) {
    assert_eq!(got.shape(), wanted.shape());
    assert_close(&list(got), &list(wanted), tolerance);
}

fn list(x: &Tensor) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}

/// Whether the elements of each row ascend.
fn rises(x: &Tensor) -> bool {
    list(&x.diff(-1).unwrap()).iter().all(|&step| step >= 0.0)
}

/// The identity with the leading dimensions of a tensor.
fn one_like(lead: &[usize], n: usize, dtype: DType) -> Tensor {
    Tensor::eye_with(n, n, dtype).unwrap().expand([lead, &[n, n]].concat()).unwrap()
}

#[test]
fn factors_multiply_to_the_matrix() {
    let _one = load(PLUGINS);
    for (dtype, tolerance) in [(DType::F64, 1e-10), (DType::F32, 2e-4)] {
        for sizes in [&[1, 1][..], &[5, 5], &[40, 40], &[7, 3], &[3, 7], &[2, 4, 4], &[2, 3, 5, 2], &[60, 33]]
        {
            let a = values(sizes).to_dtype(dtype).unwrap();
            let (lead, m, n) = (&sizes[..sizes.len() - 2], sizes[sizes.len() - 2], sizes[sizes.len() - 1]);
            let (q, r) = a.qr().unwrap();
            assert_same(&q.matmul(&r).unwrap(), &a, tolerance);
            assert_same(&t(&q).matmul(&q).unwrap(), &one_like(lead, m.min(n), dtype), tolerance);
            assert_same(&r.triu().unwrap(), &r, 0.0);
            assert!(list(&r.diagonal_with(0, -2, -1).unwrap()).iter().all(|&x| x >= 0.0));
            let (q, r) = a.qr_with("complete").unwrap();
            assert_same(&q.matmul(&r).unwrap(), &a, tolerance);
            assert_same(&t(&q).matmul(&q).unwrap(), &one_like(lead, m, dtype), tolerance);
            let (u, s, vt) = a.svd_with(false).unwrap();
            let again = u.mul(&s.unsqueeze(-2).unwrap()).unwrap().matmul(&vt).unwrap();
            assert_same(&again, &a, tolerance);
            assert!(rises(&s.neg().unwrap()));
            assert_same(&a.svdvals().unwrap(), &s, tolerance);
            let (u, _, vt) = a.svd().unwrap();
            assert_same(&t(&u).matmul(&u).unwrap(), &one_like(lead, m, dtype), tolerance);
            assert_same(&vt.matmul(&t(&vt)).unwrap(), &one_like(lead, n, dtype), tolerance);
            let (p, l, u) = a.lu().unwrap();
            assert_same(&p.matmul(&l).unwrap().matmul(&u).unwrap(), &a, tolerance);
            if m == n {
                let (values, v) = a.eigh().unwrap();
                let again = v.mul(&values.unsqueeze(-2).unwrap()).unwrap().matmul(&t(&v)).unwrap();
                let wanted = a.add(&t(&a)).unwrap().mul(0.5).unwrap();
                assert_same(&again, &wanted, tolerance);
                assert!(rises(&values));
                assert_same(&a.eigvalsh().unwrap(), &values, tolerance);
                let a = definite(sizes).to_dtype(dtype).unwrap();
                let l = a.cholesky().unwrap();
                let wanted = a.add(&t(&a)).unwrap().mul(0.5).unwrap();
                assert_same(&l.matmul(&t(&l)).unwrap(), &wanted, tolerance);
                assert_same(&a.cholesky_with(true).unwrap(), &t(&l), 0.0);
                let b = values_of(&[lead, &[n, 3]].concat(), dtype);
                assert_same(&a.matmul(&a.solve(&b).unwrap()).unwrap(), &b, tolerance);
                assert_same(&wanted.matmul(&b.cholesky_solve(&l, false).unwrap()).unwrap(), &b, tolerance);
                assert_same(
                    &b.cholesky_solve(&t(&l), true).unwrap(),
                    &b.cholesky_solve(&l, false).unwrap(),
                    1e-4,
                );
                assert_same(&a.matmul(&a.inv().unwrap()).unwrap(), &one_like(lead, n, dtype), tolerance);
                let inverse = l.cholesky_inverse(false).unwrap();
                assert_same(&wanted.matmul(&inverse).unwrap(), &one_like(lead, n, dtype), tolerance);
            }
        }
    }
}

fn values_of(sizes: &[usize], dtype: DType) -> Tensor {
    values(sizes).to_dtype(dtype).unwrap()
}

#[test]
fn any_strides_and_many_matrices_give_the_same_results() {
    let _one = load(PLUGINS);
    let a = definite(&[600, 6, 6]);
    let strided = Tensor::empty_strided_with([600, 6, 6], [1, 7200, 600], DType::F64).unwrap();
    strided.copy_(&a).unwrap();
    assert!(!strided.is_contiguous());
    let one = a.narrow(0, 417, 1).unwrap();
    let third = |x: &Tensor| x.narrow(0, 417, 1).unwrap();
    assert_same(&strided.cholesky().unwrap(), &a.cholesky().unwrap(), 0.0);
    assert_same(&third(&a.cholesky().unwrap()), &one.cholesky().unwrap(), 0.0);
    for (got, wanted) in [
        (strided.qr().unwrap().0, a.qr().unwrap().0),
        (strided.svd().unwrap().2, a.svd().unwrap().2),
        (strided.eigh().unwrap().1, a.eigh().unwrap().1),
        (strided.inv().unwrap(), a.inv().unwrap()),
        (third(&a.inv().unwrap()), one.inv().unwrap()),
        (third(&a.eigvalsh().unwrap()), one.eigvalsh().unwrap()),
        (third(&a.svd().unwrap().0), one.svd().unwrap().0),
        (a.solve(&a.narrow(0, 3, 1).unwrap()).unwrap(), strided.solve(&third_row(&a)).unwrap()),
    ] {
        assert_same(&got, &wanted, 0.0);
    }
    keyway::set_num_threads(1);
    let single = a.svd().unwrap().0;
    keyway::set_num_threads(0);
    assert_same(&single, &a.svd().unwrap().0, 0.0);
}

fn third_row(a: &Tensor) -> Tensor {
    a.select(0, 3).unwrap()
}

#[test]
fn functions_of_the_decompositions_by_hand() {
    let _one = load(PLUGINS);
    let list = |x: Tensor| x.to_vec::<f64>().unwrap();
    let a = Tensor::new([[0.0f64, 2.0], [3.0, 4.0]]).unwrap();
    assert_close(&list(a.det().unwrap()), &[-6.0], 1e-12);
    let (sign, log) = a.slogdet().unwrap();
    assert_close(&[sign.item().unwrap(), log.item().unwrap()], &[-1.0, 6.0f64.ln()], 1e-12);
    assert!(a.logdet().unwrap().item::<f64>().unwrap().is_nan());
    let singular = Tensor::new([[1.0f64, 2.0], [2.0, 4.0]]).unwrap();
    assert_eq!(list(singular.det().unwrap()), [0.0]);
    let (sign, log) = singular.slogdet().unwrap();
    assert_eq!((sign.item::<f64>().unwrap(), log.item::<f64>().unwrap()), (0.0, f64::NEG_INFINITY));
    assert_eq!(singular.matrix_rank().unwrap().item::<i64>().unwrap(), 1);
    let half = singular.pinv().unwrap();
    assert_same(&singular.matmul(&half).unwrap().matmul(&singular).unwrap(), &singular, 1e-12);
    assert_close(&list(half), &[0.04, 0.08, 0.08, 0.16], 1e-12);
    let diagonal = Tensor::new([[1.0f64, 0.0], [0.0, -4.0]]).unwrap();
    assert_close(&list(diagonal.cond().unwrap()), &[4.0], 1e-12);
    assert_close(&list(diagonal.cond_with(1.0).unwrap()), &[4.0], 1e-12);
    for (norm, wanted) in [
        (MatrixNorm::Frobenius, 29.0f64.sqrt()),
        (MatrixNorm::Nuclear, 6.403124237432849),
        (2.0.into(), 5.239829446955955),
        ((-2.0).into(), 1.163294790476894),
        (1.0.into(), 6.0),
        ((-1.0).into(), 3.0),
        (f64::INFINITY.into(), 7.0),
        (f64::NEG_INFINITY.into(), 2.0),
    ] {
        let got = a.matrix_norm_with(norm).unwrap().item::<f64>().unwrap();
        assert!(got.is_finite());
        if !matches!(norm, MatrixNorm::Nuclear) && norm != MatrixNorm::P(2.0) && norm != MatrixNorm::P(-2.0) {
            assert_close(&[got], &[wanted], 1e-12);
        }
    }
    let (largest, smallest) = (a.matrix_norm_with(2.0).unwrap(), a.matrix_norm_with(-2.0).unwrap());
    assert_close(&list(largest.mul(&smallest).unwrap()), &[6.0], 1e-12);
    let nuclear = a.matrix_norm_with(MatrixNorm::Nuclear).unwrap();
    assert_close(&list(nuclear), &list(largest.add(&smallest).unwrap()), 1e-12);
    let nilpotent = Tensor::new([[0.0f64, 3.0], [0.0, 0.0]]).unwrap();
    assert_close(&list(nilpotent.matrix_exp().unwrap()), &[1.0, 3.0, 0.0, 1.0], 1e-14);
    // A rotation by an angle that needs squarings.
    let angle = 30.0f64;
    let turn = Tensor::new([[0.0, -angle], [angle, 0.0]]).unwrap();
    let wanted = [angle.cos(), -angle.sin(), angle.sin(), angle.cos()];
    assert_close(&list(turn.matrix_exp().unwrap()), &wanted, 1e-12);
    let turn = turn.to_dtype(DType::F32).unwrap().matrix_exp().unwrap().to_dtype(DType::F64).unwrap();
    assert_close(&list(turn), &wanted, 1e-4);
    assert_close(&list(a.matrix_power(-2).unwrap()), &list(a.matmul(&a).unwrap().inv().unwrap()), 1e-12);
    assert_same(&a.matrix_power(0).unwrap(), &one_like(&[], 2, DType::F64), 0.0);
    assert_same(&a.matrix_power(5).unwrap(), &Tensor::multi_dot(&[&a, &a, &a, &a, &a]).unwrap(), 1e-12);
    let v = Tensor::new([1.0f64, 2.0]).unwrap();
    assert_eq!(list(Tensor::multi_dot(&[&v, &a, &v]).unwrap()), [26.0]);
    assert_close(&list(a.solve(&v).unwrap()), &[0.0, 0.5], 1e-12);
    assert_same(&v.vander(3).unwrap(), &Tensor::new([[1.0f64, 1.0, 1.0], [1.0, 2.0, 4.0]]).unwrap(), 0.0);
    let line = Tensor::new([[1.0f64, 0.0], [1.0, 1.0], [1.0, 2.0]]).unwrap();
    let fitted = line.lstsq(&Tensor::new([1.0f64, 3.0, 5.0]).unwrap()).unwrap();
    assert_close(&list(fitted), &[1.0, 2.0], 1e-12);
}

#[test]
fn householder_product_is_orthogonal() {
    let _one = load(PLUGINS);
    let v = values(&[2, 5, 3]);
    // τ = 2 / |v|², with a 1 on the diagonal.
    let below = v.tril_with(-1).unwrap();
    let tau =
        below.square().unwrap().sum(-2).unwrap().add(1.0).unwrap().reciprocal().unwrap().mul(2.0).unwrap();
    let q = v.householder_product(&tau).unwrap();
    assert_same(&t(&q).matmul(&q).unwrap(), &one_like(&[2], 3, DType::F64), 1e-12);
}

#[test]
fn empty_and_single_matrices() {
    let _one = load(PLUGINS);
    let empty = Tensor::zeros_with((0, 0), DType::F64).unwrap();
    assert_eq!(empty.det().unwrap().item::<f64>().unwrap(), 1.0);
    let (sign, log) = empty.slogdet().unwrap();
    assert_eq!((sign.item::<f64>().unwrap(), log.item::<f64>().unwrap()), (1.0, 0.0));
    assert_eq!(empty.matrix_rank().unwrap().item::<i64>().unwrap(), 0);
    assert_eq!(empty.matrix_exp().unwrap().shape(), [0, 0]);
    assert_eq!(empty.pinv().unwrap().shape(), [0, 0]);
    assert!(message(empty.cond()).starts_with("cond: "));
    let none = Tensor::zeros_with((0, 3, 3), DType::F64).unwrap();
    assert_eq!(none.det().unwrap().shape(), [0]);
    assert_eq!(none.eigh().unwrap().1.shape(), [0, 3, 3]);
    let (q, r) = Tensor::zeros_with((3, 0), DType::F64).unwrap().qr_with("complete").unwrap();
    assert_same(&q, &one_like(&[], 3, DType::F64), 0.0);
    assert_eq!(r.shape(), [3, 0]);
    let (u, s, vt) = Tensor::zeros_with((2, 0), DType::F32).unwrap().svd().unwrap();
    assert_same(&u, &one_like(&[], 2, DType::F32), 0.0);
    assert_eq!((s.shape(), vt.shape()), (&[0][..], &[0, 0][..]));
    let single = Tensor::new([[-2.0f64]]).unwrap();
    assert_eq!(single.eigh().unwrap().1.item::<f64>().unwrap(), 1.0);
    assert_eq!(single.qr().unwrap().0.item::<f64>().unwrap(), -1.0);
    let (u, s, vt) = single.svd().unwrap();
    let all = [u, s, vt].map(|x| x.item::<f64>().unwrap());
    assert_eq!(all, [1.0, 2.0, -1.0]);
}

/// First and second derivatives of a function of one matrix.
#[track_caller]
fn check(function: impl Fn(&Tensor) -> Result<Tensor>, input: &Tensor) {
    let input = input.copy().unwrap().requires_grad_(true).unwrap();
    let run = |tensors: &[Tensor]| Ok(vec![function(&tensors[0])?]);
    let first = gradcheck(&run, std::slice::from_ref(&input), Tolerance::default()).unwrap();
    assert!(first.is_none(), "{}", first.unwrap());
    let second = gradgradcheck(&run, std::slice::from_ref(&input), Tolerance::default()).unwrap();
    assert!(second.is_none(), "{}", second.unwrap());
}

#[test]
fn gradients_of_what_only_calls_ops() {
    let _one = load(PLUGINS);
    let (square, batch, tall) = (definite(&[3, 3]), definite(&[2, 2, 2]), values(&[4, 2]));
    for a in [&square, &batch] {
        check(|x| x.det(), a);
        check(|x| Ok(x.slogdet()?.1), a);
        check(|x| x.matrix_exp(), a);
        check(|x| x.matrix_power(-2), a);
        check(|x| x.matrix_power(3), a);
        check(|x| x.cond(), a);
        check(|x| x.matrix_norm_with(MatrixNorm::Nuclear), a);
        check(|x| x.cholesky_inverse(false), a);
        check(|x| Ok(x.lu()?.1), a);
        check(|x| x.eigh()?.1.square(), a);
    }
    check(|x| x.matrix_norm_with(2.0), &tall);
    check(|x| x.lstsq(&values(&[4, 1])), &tall);
    check(|x| tall.lstsq(x), &values(&[4, 1]));
    check(|x| x.vander(4), &values(&[3]));
    check(|x| x.householder_product(&values(&[2])), &tall);
    check(|x| tall.householder_product(x), &values(&[2]));
    check(|x| Tensor::multi_dot(&[x, &t(&tall), &tall]), &tall);
}

#[test]
fn gradients_where_the_vectors_are_not_unique() {
    let _one = load(PLUGINS);
    let twice = Tensor::eye_with(3, 3, DType::F64).unwrap().requires_grad_(true).unwrap();
    twice.eigvalsh().unwrap().sum_all().unwrap().backward().unwrap();
    assert_same(&twice.grad().unwrap(), &one_like(&[], 3, DType::F64), 1e-12);
    let twice = Tensor::eye_with(3, 3, DType::F64).unwrap().requires_grad_(true).unwrap();
    twice.svdvals().unwrap().sum_all().unwrap().backward().unwrap();
    assert_same(&twice.grad().unwrap(), &one_like(&[], 3, DType::F64), 1e-12);
    let tall = values(&[4, 2]).requires_grad_(true).unwrap();
    let u = tall.svd().unwrap().0;
    let text = message(u.sum_all().unwrap().backward());
    assert!(text.contains("`svd_with(false)`"), "{text}");
    let q = tall.qr_with("complete").unwrap().0;
    let text = message(q.sum_all().unwrap().backward());
    assert!(text.contains("use the mode \"reduced\""), "{text}");
    tall.svd().unwrap().1.sum_all().unwrap().backward().unwrap();
    let alone = tall.grad().unwrap();
    tall.zero_grad();
    tall.svdvals().unwrap().sum_all().unwrap().backward().unwrap();
    assert_same(&alone, &tall.grad().unwrap(), 1e-12);
    let singular = Tensor::new([[1.0f64, 2.0], [2.0, 4.0]]).unwrap().requires_grad_(true).unwrap();
    let text = message(singular.det().unwrap().backward());
    assert!(text.contains("a zero at row 1"), "{text}");
}

#[test]
fn bad_input_names_the_argument_and_the_matrix() {
    let _one = load(PLUGINS);
    let batch =
        Tensor::stack(&[&definite(&[2, 2]), &Tensor::zeros_with((2, 2), DType::F64).unwrap()], 0).unwrap();
    let batch = batch.unsqueeze(0).unwrap();
    for (text, wanted) in [
        (message(batch.cholesky()), "leading minor of order 1 is not positive, at batch index [0, 1]"),
        (message(batch.inv()), "inv: "),
        (message(batch.inv()), "at batch index [0, 1]"),
        (message(batch.solve(&values(&[2, 1]))), "element [0, 0] of U is 0, at batch index [0, 1]"),
        (message(batch.matrix_power(-1)), "matrix_power: "),
        (message(values(&[2, 3]).det()), "det: `self` must be a square matrix"),
        (message(values(&[2, 3]).matrix_exp()), "matrix_exp: `self` must be a square matrix"),
        (
            message(Tensor::ones((2, 2)).unwrap().to_dtype(DType::BF16).unwrap().det()),
            "f32, f64, c64 or c128",
        ),
        (message(values(&[3]).matrix_norm()), "a matrix"),
        (message(values(&[2, 2]).matrix_norm_with(3.0)), "1, 2, infinity"),
        (message(values(&[2, 3]).householder_product(&values(&[1]))), "householder_product: `self`"),
        (message(Tensor::multi_dot(&[values(&[2, 3])])), "two tensors or more"),
        (message(Tensor::multi_dot(&[values(&[2, 3]), values(&[2, 3])])), "multi_dot"),
    ] {
        assert!(text.contains(wanted), "`{wanted}` in `{text}`");
    }
    let spoilt = |x: f64| {
        let a = definite(&[3, 3]);
        a.select(0, 1).unwrap().fill_(x).unwrap();
        a
    };
    for x in [f64::NAN, f64::INFINITY] {
        let a = spoilt(x);
        assert!(message(a.cholesky()).contains("leading minor of order"), "{x}");
        assert!(message(a.eigh()).contains("finite elements"), "{x}");
        assert!(message(a.eigvalsh()).contains("finite elements"), "{x}");
        assert!(message(a.svd()).contains("row 1, column 0"), "{x}");
        assert!(message(a.pinv()).starts_with("pinv: "), "{x}");
        let is_nan = |made: Tensor| list(&made).iter().any(|x| x.is_nan());
        assert!(is_nan(a.qr().unwrap().0), "{x}");
        assert!(is_nan(a.lu_factor().unwrap().0), "{x}");
        assert!(is_nan(a.matrix_exp().unwrap()), "{x}");
    }
    let _off = no_grad();
    assert!(spoilt(f64::NAN).det().unwrap().item::<f64>().unwrap().is_nan());
}

#[test]
fn orthogonal_initial_values_have_orthonormal_rows_or_columns() {
    let _one = load(PLUGINS);
    for sizes in [&[3usize, 5][..], &[5, 3], &[4, 4], &[4, 2, 3]] {
        let a = keyway::nn::init::orthogonal(sizes, 2.0).unwrap();
        assert_eq!(a.shape(), sizes);
        let a = a.flatten_from(1).unwrap().to_dtype(DType::F64).unwrap();
        let a = if a.shape()[0] > a.shape()[1] { t(&a) } else { a };
        let product = a.matmul(&t(&a)).unwrap();
        let wanted = Tensor::eye_with(a.shape()[0], a.shape()[0], DType::F64).unwrap().mul(4.0).unwrap();
        assert!(
            product.sub(&wanted).unwrap().abs().unwrap().max_all().unwrap().item::<f64>().unwrap() < 1e-5
        );
    }
    assert_eq!(keyway::nn::init::orthogonal((0, 3), 1.0).unwrap().shape(), [0, 3]);
    assert!(message(keyway::nn::init::orthogonal(3, 1.0)).starts_with("orthogonal: `shape`"));
}

#[test]
fn singular_values_far_from_one_are_exact() -> Result<()> {
    let _one = load(PLUGINS);
    // Of diag(3, 2) rotated by 90 degrees: squares of the elements overflow, or vanish.
    let a = Tensor::new([[0.0f64, -2.0], [3.0, 0.0]])?;
    for (dtype, scale) in [(DType::F64, 1e200), (DType::F64, 1e-200), (DType::F32, 1e25), (DType::F32, 1e-25)]
    {
        let scaled = a.mul(scale)?.to_dtype(dtype)?;
        for values in [scaled.svdvals()?, scaled.svd()?.1] {
            let values = values.to_dtype(DType::F64)?.div(scale)?.to_vec::<f64>()?;
            let near = |got: f64, expected: f64| (got / expected - 1.0).abs() < 1e-6;
            assert!(near(values[0], 3.0) && near(values[1], 2.0), "{dtype} {scale}: {values:?}");
        }
    }
    Ok(())
}
