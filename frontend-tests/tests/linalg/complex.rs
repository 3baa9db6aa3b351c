//! Complex matrices: what the factors multiply to, phases, gradients, values and gradients beside PyTorch's (`expected.py`), and
//! bad input.

use super::rehearsal_support::{assert_close, load, message};
use super::{PLUGINS, check, one_like, t, values};
use keyway::ops::linalg::MatrixNorm;
use keyway::prelude::*;
use keyway::{Complex, Result};

/// Fixed complex values, from element `first` of the sequence on.
pub(super) fn complexes(sizes: &[usize], first: usize) -> Tensor {
    Tensor::complex(&reals(sizes, first), &reals(sizes, first + 70)).unwrap()
}

/// Fixed values, from element `first` of the sequence on.
pub(super) fn reals(sizes: &[usize], first: usize) -> Tensor {
    let count = sizes.iter().product::<usize>();
    values(&[first + count]).narrow(0, first, count).unwrap().reshape(sizes).unwrap()
}

pub(super) fn h(x: &Tensor) -> Tensor {
    x.adjoint().unwrap()
}

/// The matrix times its adjoint, with `n` added to the diagonal.
fn definite(a: &Tensor) -> Result<Tensor> {
    let n = a.dim(-2)?;
    a.matmul(&a.adjoint()?)?.add(&Tensor::eye_with(n, n, a.dtype())?.mul(n as f64)?)
}

#[track_caller]
pub(super) fn assert_near(got: &Tensor, wanted: &Tensor, tolerance: f64) {
    assert_eq!(got.shape(), wanted.shape());
    if got.elem_count() > 0 {
        let wide = |x: &Tensor| x.to_dtype(DType::C128).unwrap();
        let apart = wide(got).sub(&wide(wanted)).unwrap().abs().unwrap().max_all().unwrap();
        let apart = apart.item::<f64>().unwrap();
        assert!(apart <= tolerance, "{apart:e} above {tolerance:e}");
    }
}

/// Whether the first component of each column that is not negligible is real and positive.
pub(super) fn has_phases(v: &Tensor) -> bool {
    let &[.., m, n] = v.shape() else { panic!("no matrix") };
    let all = v.to_dtype(DType::C128).unwrap().to_vec::<Complex<f64>>().unwrap();
    all.chunks(m * n).all(|v| {
        (0..n).all(|j| {
            let column: Vec<_> = (0..m).map(|i| v[i * n + j]).collect();
            let bound = column.iter().map(|x| x.norm()).fold(0.0, f64::max) / 1000.0;
            let first = column.iter().find(|x| x.norm() > bound).unwrap();
            first.im == 0.0 && first.re > 0.0
        })
    })
}

#[test]
fn factors_multiply_to_the_matrix() {
    let _one = load(PLUGINS);
    for (dtype, tolerance) in [(DType::C128, 1e-10), (DType::C64, 3e-4)] {
        for sizes in [&[1, 1][..], &[5, 5], &[40, 40], &[7, 3], &[3, 7], &[2, 4, 4], &[2, 3, 5, 2], &[60, 33]]
        {
            let a = complexes(sizes, 0).to_dtype(dtype).unwrap();
            let (lead, m, n) = (&sizes[..sizes.len() - 2], sizes[sizes.len() - 2], sizes[sizes.len() - 1]);
            let k = m.min(n);
            let (q, r) = a.qr().unwrap();
            assert_near(&q.matmul(&r).unwrap(), &a, tolerance);
            assert_near(&h(&q).matmul(&q).unwrap(), &one_like(lead, k, dtype), tolerance);
            assert_near(&r.triu().unwrap(), &r, 0.0);
            let diagonal = r.diagonal_with(0, -2, -1).unwrap();
            assert_near(&diagonal.abs().unwrap(), &diagonal, 0.0);
            let (q, r) = a.qr_with("complete").unwrap();
            assert_near(&q.matmul(&r).unwrap(), &a, tolerance);
            assert_near(&h(&q).matmul(&q).unwrap(), &one_like(lead, m, dtype), tolerance);
            let (u, s, vh) = a.svd_with(false).unwrap();
            assert_eq!(s.dtype(), dtype.to_real());
            assert!(has_phases(&u));
            let again = u.mul(&s.unsqueeze(-2).unwrap()).unwrap().matmul(&vh).unwrap();
            assert_near(&again, &a, tolerance);
            assert_near(&a.svdvals().unwrap(), &s, tolerance);
            let (u, _, vh) = a.svd().unwrap();
            assert_near(&h(&u).matmul(&u).unwrap(), &one_like(lead, m, dtype), tolerance);
            assert_near(&vh.matmul(&h(&vh)).unwrap(), &one_like(lead, n, dtype), tolerance);
            let (p, l, u) = a.lu().unwrap();
            assert_near(&p.matmul(&l).unwrap().matmul(&u).unwrap(), &a, tolerance);
            let inverse = a.pinv().unwrap();
            assert_near(&a.matmul(&inverse).unwrap().matmul(&a).unwrap(), &a, 10.0 * tolerance);
            if m != n {
                continue;
            }
            let (values, v) = a.eigh().unwrap();
            assert_eq!(values.dtype(), dtype.to_real());
            assert!(has_phases(&v));
            let again = v.mul(&values.unsqueeze(-2).unwrap()).unwrap().matmul(&h(&v)).unwrap();
            assert_near(&again, &a.add(&h(&a)).unwrap().mul(0.5).unwrap(), tolerance);
            assert_near(&a.eigvalsh().unwrap(), &values, tolerance);
            let a = definite(&a).unwrap();
            let l = a.cholesky().unwrap();
            assert_near(&l.matmul(&h(&l)).unwrap(), &a, 20.0 * tolerance);
            assert_near(&a.cholesky_with(true).unwrap(), &h(&l), 0.0);
            let b = complexes(&[lead, &[n, 3]].concat(), 9).to_dtype(dtype).unwrap();
            let x = a.solve(&b).unwrap();
            assert_near(&a.matmul(&x).unwrap(), &b, tolerance);
            assert_near(&b.cholesky_solve(&l, false).unwrap(), &x, tolerance);
            assert_near(&b.cholesky_solve(&h(&l), true).unwrap(), &x, tolerance);
            assert_near(&a.matmul(&a.inv().unwrap()).unwrap(), &one_like(lead, n, dtype), tolerance);
            assert_near(
                &a.matmul(&l.cholesky_inverse(false).unwrap()).unwrap(),
                &one_like(lead, n, dtype),
                tolerance,
            );
            // Both sides, and the adjoint.
            let (lu, pivots) = a.lu_factor().unwrap();
            let c = h(&b);
            for (left, adjoint) in [(true, false), (true, true), (false, false), (false, true)] {
                let b = if left { &b } else { &c };
                let x = lu.lu_solve_with(&pivots, b, left, adjoint).unwrap();
                let a = if adjoint { h(&a) } else { a.clone() };
                let again = if left { a.matmul(&x) } else { x.matmul(&a) };
                assert_near(&again.unwrap(), b, tolerance);
            }
        }
    }
}

#[test]
fn functions_of_a_small_matrix() {
    let _one = load(PLUGINS);
    let i = Complex::new(0.0f64, 1.0);
    let c = Complex::new;
    let a = Tensor::new([[i, c(1.0, 0.0)], [c(0.0, 0.0), c(2.0, 0.0)]]).unwrap();
    assert_eq!(a.det().unwrap().item::<Complex<f64>>().unwrap(), c(0.0, 2.0));
    let (sign, log) = a.slogdet().unwrap();
    assert_eq!((sign.dtype(), log.dtype()), (DType::C128, DType::F64));
    assert_near(&sign, &Tensor::new(i).unwrap(), 1e-15);
    assert_close(&[log.item().unwrap()], &[2.0f64.ln()], 1e-15);
    let log = a.logdet().unwrap().item::<Complex<f64>>().unwrap();
    assert_close(&[log.re, log.im], &[2.0f64.ln(), std::f64::consts::FRAC_PI_2], 1e-15);
    assert_eq!(a.matrix_rank().unwrap().item::<i64>().unwrap(), 2);
    let row = Tensor::new([i, c(2.0, 0.0)]).unwrap();
    let outer = row.unsqueeze(-1).unwrap().matmul(&row.unsqueeze(0).unwrap()).unwrap();
    assert_eq!(outer.matrix_rank().unwrap().item::<i64>().unwrap(), 1);
    let zero = outer.zeros_like().unwrap();
    assert_eq!(zero.det().unwrap().item::<Complex<f64>>().unwrap(), c(0.0, 0.0));
    assert_near(&zero.lu_factor().unwrap().0, &zero, 0.0);
    assert_eq!(outer.slogdet().unwrap().0.item::<Complex<f64>>().unwrap(), c(0.0, 0.0));
    let diagonal = Tensor::new([[i, c(0.0, 0.0)], [c(0.0, 0.0), c(0.0, -4.0)]]).unwrap();
    for norm in [MatrixNorm::P(2.0), 1.0.into(), f64::INFINITY.into()] {
        assert_close(&[diagonal.matrix_norm_with(norm).unwrap().item().unwrap()], &[4.0], 1e-14);
    }
    assert_close(&[diagonal.cond().unwrap().item().unwrap()], &[4.0], 1e-14);
    assert_close(&[diagonal.cond_with(1.0).unwrap().item().unwrap()], &[4.0], 1e-14);
    let turned = diagonal.matrix_exp().unwrap().diagonal_with(0, -2, -1).unwrap();
    let wanted = Tensor::new([c(1.0f64.cos(), 1.0f64.sin()), c(4.0f64.cos(), -4.0f64.sin())]).unwrap();
    assert_near(&turned, &wanted, 1e-14);
    let product = Tensor::multi_dot(&[&a, &diagonal, &a]).unwrap();
    assert_near(&product, &a.matmul(&diagonal).unwrap().matmul(&a).unwrap(), 1e-14);
    assert_near(&a.matrix_power(-2).unwrap(), &a.matmul(&a).unwrap().inv().unwrap(), 1e-14);
    let v = complexes(&[5, 3], 0);
    // τ = 2 / |v|², with a 1 on the diagonal.
    let squares = v.tril_with(-1).unwrap().abs().unwrap().square().unwrap().sum(-2).unwrap();
    let tau =
        squares.add(1.0).unwrap().reciprocal().unwrap().mul(2.0).unwrap().to_dtype(DType::C128).unwrap();
    let q = v.householder_product(&tau).unwrap();
    assert_near(&h(&q).matmul(&q).unwrap(), &one_like(&[], 3, DType::C128), 1e-12);
    // Least squares: the residual is orthogonal to the columns.
    let (b, x) = (complexes(&[5], 30), v.lstsq(&complexes(&[5], 30)).unwrap());
    let rest = b.sub(&v.mv(&x).unwrap()).unwrap();
    assert_near(&h(&v).mv(&rest).unwrap(), &x.zeros_like().unwrap(), 1e-12);
}

#[test]
fn strides_batches_and_empty_matrices() {
    let _one = load(PLUGINS);
    let a = definite(&complexes(&[300, 5, 5], 0)).unwrap();
    let strided = a.permute([2, 0, 1]).unwrap().contiguous().unwrap().permute([1, 2, 0]).unwrap();
    assert!(!strided.is_contiguous());
    assert_near(&strided.cholesky().unwrap(), &a.cholesky().unwrap(), 0.0);
    assert_near(&strided.eigh().unwrap().1, &a.eigh().unwrap().1, 0.0);
    assert_near(&strided.svd().unwrap().2, &a.svd().unwrap().2, 0.0);
    let one = a.narrow(0, 217, 1).unwrap();
    assert_near(&a.qr().unwrap().0.narrow(0, 217, 1).unwrap(), &one.qr().unwrap().0, 0.0);
    let empty = Tensor::zeros_with((0, 0), DType::C128).unwrap();
    assert_eq!(empty.det().unwrap().item::<Complex<f64>>().unwrap(), Complex::new(1.0, 0.0));
    assert_eq!(empty.eigh().unwrap().1.shape(), [0, 0]);
    assert_eq!(empty.cholesky().unwrap().shape(), [0, 0]);
    assert_eq!(empty.matrix_exp().unwrap().shape(), [0, 0]);
    let (u, s, vh) = Tensor::zeros_with((2, 0), DType::C64).unwrap().svd().unwrap();
    assert_near(&u, &one_like(&[], 2, DType::C64), 0.0);
    assert_eq!((s.shape(), vh.shape()), (&[0][..], &[0, 0][..]));
}

#[test]
fn bad_input_is_refused_as_for_real_matrices() {
    let _one = load(PLUGINS);
    let one = Tensor::eye_with(2, 2, DType::C128).unwrap();
    let batch = Tensor::stack(&[&one, &one.zeros_like().unwrap()], 0).unwrap();
    let indefinite = one.neg().unwrap();
    for (text, wanted) in [
        (message(batch.cholesky()), "leading minor of order 1 is not positive, at batch index [1]"),
        (message(indefinite.cholesky()), "leading minor of order 1"),
        (message(batch.inv()), "at batch index [1]"),
        (message(batch.solve(&complexes(&[2, 1], 0))), "element [0, 0] of U is 0, at batch index [1]"),
        (message(complexes(&[2, 3], 0).det()), "det: `self` must be a square matrix"),
        (message(complexes(&[2, 3], 0).eigh()), "a square matrix"),
        (message(one.solve(&values(&[2, 1]))), "c128, as `self`"),
        (message(values(&[2, 2]).solve(&complexes(&[2, 1], 0))), "f64, as `self`"),
        (
            message(one.solve_triangular(&complexes(&[2, 1], 0).to_dtype(DType::C64).unwrap(), true)),
            "c128, as",
        ),
        (
            message(batch.solve_triangular(&complexes(&[2, 1], 0), true)),
            "a zero at row 0, at batch index [1]",
        ),
    ] {
        assert!(text.contains(wanted), "`{wanted}` in `{text}`");
    }
    for part in [Complex::new(0.0, f64::NAN), Complex::new(f64::INFINITY, 0.0)] {
        let spoilt = definite(&complexes(&[3, 3], 0)).unwrap();
        let mut all = spoilt.to_vec::<Complex<f64>>().unwrap();
        all[3] = part;
        let a = Tensor::from_vec(all, (3, 3)).unwrap();
        assert!(message(a.cholesky()).contains("leading minor of order"), "{part}");
        for text in [message(a.eigh()), message(a.eigvalsh()), message(a.svd()), message(a.svdvals())] {
            assert!(text.contains("finite elements") && text.contains("row 1, column 0"), "{text}");
        }
        let is_spoilt = |made: Tensor| {
            let finite = made.isfinite().unwrap().sum_all().unwrap().item::<i64>().unwrap();
            finite < made.elem_count() as i64
        };
        assert!(is_spoilt(a.qr().unwrap().0), "{part}");
        assert!(is_spoilt(a.lu_factor().unwrap().0), "{part}");
        assert!(is_spoilt(a.matrix_exp().unwrap()), "{part}");
    }
}

#[test]
fn gradients() {
    let _one = load(PLUGINS);
    let (square, batch) = (complexes(&[3, 3], 0), complexes(&[2, 2, 2], 0));
    for a in [&square, &batch] {
        check(|x| definite(x)?.cholesky(), a);
        check(|x| definite(x)?.cholesky_with(true), a);
        check(|x| x.inv(), a);
        check(|x| x.det(), a);
        check(|x| Ok(x.slogdet()?.0), a);
        check(|x| Ok(x.slogdet()?.1), a);
        check(|x| x.matrix_exp(), a);
        check(|x| x.matrix_power(-2), a);
        check(|x| x.lu_factor().map(|(lu, _)| lu), a);
        // The phases are fixed, so the vectors themselves have derivatives.
        check(|x| Ok(definite(x)?.eigh()?.1), a);
        check(|x| definite(x)?.eigvalsh(), a);
    }
    for a in [&square, &complexes(&[4, 2], 0), &complexes(&[2, 3], 0)] {
        check(|x| Ok(x.qr()?.0), a);
        check(|x| Ok(x.qr()?.1), a);
        check(|x| Ok(x.svd_with(false)?.0), a);
        check(|x| Ok(x.svd_with(false)?.2), a);
        check(|x| x.svdvals(), a);
        check(|x| x.pinv(), a);
    }
    let b = complexes(&[3, 2], 20);
    check(|x| x.solve(&b), &square);
    check(|x| square.solve(x), &b);
    check(|x| x.solve_triangular(&b, true), &square);
    check(|x| square.solve_triangular_with(&x.transpose(0, 1)?, false, false, false), &b);
    let (lu, pivots) = square.lu_factor().unwrap();
    for (left, adjoint) in [(true, false), (true, true), (false, false), (false, true)] {
        let b = if left { b.clone() } else { t(&b) };
        check(|x| x.lu_solve_with(&pivots, &b, left, adjoint), &lu);
        check(|x| lu.lu_solve_with(&pivots, x, left, adjoint), &b);
    }
    let tall = complexes(&[4, 2], 5);
    check(|x| x.householder_product(&complexes(&[2], 3)), &tall);
    check(|x| x.lstsq(&complexes(&[4, 1], 3)), &tall);
    check(|x| b.cholesky_solve(&definite(x)?.cholesky()?, false), &square);
    check(|x| x.cond(), &square);
    check(|x| x.matrix_norm_with(MatrixNorm::Nuclear), &square);
}

/// `Re Σ x w` with fixed weights.
fn weighted(x: &Tensor, first: usize) -> Result<Tensor> {
    x.mul(&complexes(x.shape(), first))?.sum_all()?.real()
}

/// `Σ |x|² w` with fixed weights.
fn squares(x: &Tensor, first: usize) -> Result<Tensor> {
    x.abs()?.square()?.mul(&reals(x.shape(), first))?.sum_all()
}

fn columns(a: &Tensor) -> Result<Tensor> {
    let sizes = [a.dim(-2)?, 2];
    let made = if a.dtype().is_complex() { complexes(&sizes, 110) } else { reals(&sizes, 110) };
    made.to_dtype(a.dtype())
}

/// The losses of `expected.py`.
fn loss(name: &str, a: &Tensor) -> Result<Tensor> {
    match name {
        "cholesky" => weighted(&definite(a)?.cholesky()?, 40),
        "solve" => weighted(&a.solve(&columns(a)?)?, 40),
        "inv" => weighted(&a.inv()?, 40),
        "det" => weighted(&a.det()?, 40),
        "slogdet" => {
            let (sign, log) = a.slogdet()?;
            log.add(&weighted(&sign, 40)?)
        }
        "qr" => {
            let (q, r) = a.qr()?;
            squares(&q, 60)?.add(&squares(&r, 70)?)
        }
        "eigh" => {
            let (values, v) = definite(a)?.eigh()?;
            weighted(&values, 40)?.add(&squares(&v, 60)?)
        }
        "svd" => {
            let (u, s, vh) = a.svd_with(false)?;
            let product = u.mul(&s.square()?.unsqueeze(-2)?)?.matmul(&vh)?;
            let vectors = squares(&u, 60)?.add(&squares(&vh, 70)?)?;
            weighted(&s, 40)?.add(&vectors)?.add(&weighted(&product, 40)?)
        }
        "pinv" => weighted(&a.pinv()?, 40),
        "lstsq" => weighted(&a.lstsq(&columns(a)?)?, 40),
        "matrix_exp" => weighted(&a.matrix_exp()?, 40),
        "nuclear" => a.matrix_norm_with(MatrixNorm::Nuclear),
        "cond" => a.cond(),
        "eig" => {
            let (values, v) = a.eig()?;
            let (size, rows) = (values.abs()?, reals(&[a.dim(-1)?, 1], 60));
            let vectors = v.abs()?.square()?.mul(&rows)?.mul(&size.unsqueeze(-2)?)?.sum_all()?;
            size.pow(3)?.sum_all()?.add(&vectors)
        }
        "eigvals" => a.eigvals()?.abs()?.pow(3)?.sum_all(),
        "matrix_power" => weighted(&a.matrix_power(-2)?, 40),
        "cholesky_solve" => weighted(&columns(a)?.cholesky_solve(&definite(a)?.cholesky()?, false)?, 40),
        other => panic!("no case {other}"),
    }
}

#[test]
fn losses_and_gradients_are_those_of_pytorch() {
    let _one = load(PLUGINS);
    let mut count = 0;
    for line in include_str!("expected.txt").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [kind, sizes, name, ref numbers @ ..] = words[..] else { panic!("{line}") };
        let sizes: Vec<usize> = sizes.split('x').map(|size| size.parse().unwrap()).collect();
        let wanted: Vec<f64> = numbers.iter().map(|x| x.parse().unwrap()).collect();
        let a = if kind == "complex" { complexes(&sizes, 0) } else { reals(&sizes, 0) };
        let a = a.requires_grad_(true).unwrap();
        let loss = loss(name, &a).unwrap();
        loss.backward().unwrap();
        let grad = a.grad().unwrap();
        let grad = if kind == "complex" { grad.view_as_real().unwrap() } else { grad };
        let got = [vec![loss.item::<f64>().unwrap()], grad.contiguous().unwrap().to_vec().unwrap()].concat();
        let size = wanted.iter().fold(1.0f64, |most, x| most.max(x.abs()));
        let near = got.iter().zip(&wanted).all(|(got, wanted)| (got - wanted).abs() <= 1e-9 * size);
        assert!(got.len() == wanted.len() && near, "{kind} {sizes:?} {name}: {got:?} for {wanted:?}");
        count += 1;
    }
    assert_eq!(count, 54);
}
