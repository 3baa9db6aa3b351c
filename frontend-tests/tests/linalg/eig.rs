//! Eigenvalues of general matrices: `A V = V diag(L)`, conventions, gradients, and where they do not exist.

use super::complex::{assert_near, complexes, h, has_phases, reals};
use super::rehearsal_support::{load, message};
use super::{PLUGINS, check};
use keyway::autograd::gradcheck::{Tolerance, gradcheck};
use keyway::prelude::*;
use keyway::{Complex, no_grad};

type C = Complex<f64>;

fn eigenvalues(a: &Tensor) -> Vec<C> {
    a.eig().unwrap().0.to_dtype(DType::C128).unwrap().to_vec().unwrap()
}

#[test]
fn vectors_diagonalise_the_matrix() {
    let _one = load(PLUGINS);
    let all = [(DType::F64, 1e-10), (DType::F32, 2e-4), (DType::C128, 1e-10), (DType::C64, 2e-4)];
    for (dtype, tolerance) in all {
        for sizes in [&[1, 1][..], &[2, 2], &[5, 5], &[2, 3, 4, 4], &[40, 40], &[90, 90]] {
            let a = if dtype.is_complex() { complexes(sizes, 0) } else { reals(sizes, 0) };
            let a = a.to_dtype(dtype).unwrap();
            let (values, v) = a.eig().unwrap();
            let complex = dtype.to_complex().unwrap_or(dtype);
            assert_eq!((values.dtype(), v.dtype()), (complex, complex));
            assert_eq!((values.shape(), v.shape()), (&sizes[..sizes.len() - 1], sizes));
            let wanted = v.mul(&values.unsqueeze(-2).unwrap()).unwrap();
            let size = values.abs().unwrap().max_all().unwrap().to_dtype(DType::F64).unwrap().item::<f64>();
            let size = size.unwrap().max(1.0);
            assert_near(&a.to_dtype(complex).unwrap().matmul(&v).unwrap(), &wanted, size * tolerance);
            let lengths = v.abs().unwrap().square().unwrap().sum(-2).unwrap();
            assert_near(&lengths, &lengths.ones_like().unwrap(), tolerance);
            assert!(has_phases(&v));
            let alone = a.eigvals().unwrap();
            assert_near(&alone.sum(-1).unwrap(), &values.sum(-1).unwrap(), 10.0 * size * tolerance);
            let total = a.diagonal_with(0, -2, -1).unwrap().sum(-1).unwrap().to_dtype(complex).unwrap();
            assert_near(&values.sum(-1).unwrap(), &total, 10.0 * size * tolerance);
        }
    }
}

#[test]
fn pairs_of_real_matrices_are_conjugates() {
    let _one = load(PLUGINS);
    let (values, v) = reals(&[12, 12], 3).eig().unwrap();
    let values = values.to_vec::<C>().unwrap();
    let mut pairs = 0;
    for (j, z) in values.iter().enumerate().filter(|(_, z)| z.im > 0.0) {
        assert_eq!(values[j + 1], z.conj());
        let column = |j: usize| v.narrow(1, j, 1).unwrap();
        assert_near(&column(j + 1), &column(j).conj().unwrap(), 0.0);
        pairs += 1;
    }
    assert!(pairs > 1);
    assert_eq!(values.iter().filter(|z| z.im < 0.0).count(), pairs);
}

#[test]
fn small_matrices_by_hand() {
    let _one = load(PLUGINS);
    let sorted = |a: &Tensor| {
        let mut all = eigenvalues(a);
        all.sort_by(|a, b| (a.re, a.im).partial_cmp(&(b.re, b.im)).unwrap());
        all
    };
    let near = |got: Vec<C>, wanted: &[C]| {
        assert_eq!(got.len(), wanted.len());
        assert!(got.iter().zip(wanted).all(|(a, b)| (a - b).norm() < 1e-12), "{got:?} for {wanted:?}");
    };
    let c = C::new;
    near(sorted(&Tensor::new([[0.0f64, -1.0], [1.0, 0.0]]).unwrap()), &[c(0.0, -1.0), c(0.0, 1.0)]);
    near(sorted(&Tensor::new([[2.0f64, 1.0], [0.0, 3.0]]).unwrap()), &[c(2.0, 0.0), c(3.0, 0.0)]);
    near(sorted(&Tensor::new([[c(0.0, 2.0)]]).unwrap()), &[c(0.0, 2.0)]);
    near(sorted(&Tensor::zeros_with((3, 3), DType::F64).unwrap()), &[c(0.0, 0.0); 3]);
    // Far from 1.
    for scale in [1e200, 1e-200, 1e-310] {
        let a = Tensor::new([[0.0f64, -scale], [scale, 0.0]]).unwrap();
        let values: Vec<C> = sorted(&a).into_iter().map(|z| z / scale).collect();
        near(values, &[c(0.0, -1.0), c(0.0, 1.0)]);
    }
    let empty = Tensor::zeros_with((0, 0), DType::F32).unwrap();
    assert_eq!((empty.eig().unwrap().1.shape(), empty.eigvals().unwrap().dtype()), (&[0, 0][..], DType::C64));
    assert_eq!(Tensor::zeros_with((0, 3, 3), DType::C64).unwrap().eig().unwrap().0.shape(), [0, 3]);
}

#[test]
fn gradients() {
    let _one = load(PLUGINS);
    for a in [reals(&[3, 3], 0), complexes(&[3, 3], 0), complexes(&[2, 2, 2], 0)] {
        check(|x| x.eigvals(), &a);
        check(|x| Ok(x.eig()?.0), &a);
        check(|x| Ok(x.eig()?.1), &a);
        // Does not depend on the phases.
        check(|x| x.eig()?.1.abs()?.square(), &a);
    }
    // A symmetric matrix has the gradient of `eigh`, up to the symmetric part.
    let a = complexes(&[3, 3], 8);
    let a = a.add(&h(&a)).unwrap().requires_grad_(true).unwrap();
    a.eigvals().unwrap().abs().unwrap().pow(3).unwrap().sum_all().unwrap().backward().unwrap();
    let general = a.grad().unwrap();
    a.zero_grad();
    a.eigvalsh().unwrap().abs().unwrap().pow(3).unwrap().sum_all().unwrap().backward().unwrap();
    assert_near(&general, &a.grad().unwrap(), 1e-10);
    let empty = Tensor::zeros_with((0, 0), DType::F64).unwrap().requires_grad_(true).unwrap();
    empty.eig().unwrap().1.abs().unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(empty.grad().unwrap().shape(), [0, 0]);
}

#[test]
fn gradients_that_do_not_exist_are_errors() {
    let _one = load(PLUGINS);
    let loss = |a: &Tensor, vectors: bool| {
        let a = a.detach().requires_grad_(true)?;
        let (values, v) = a.eig()?;
        let made = if vectors { v } else { values };
        made.abs()?.square()?.sum_all()?.backward()?;
        Ok(a.grad().unwrap())
    };
    let twice = Tensor::eye_with(3, 3, DType::F64).unwrap();
    let text = message(loss(&twice, true));
    assert!(text.contains("distinct eigenvalues"), "{text}");
    assert_near(&loss(&twice, false).unwrap(), &twice.mul(2.0).unwrap(), 1e-12);
    let defective = Tensor::new([[1.0f64, 1.0], [0.0, 1.0]]).unwrap();
    for vectors in [false, true] {
        let text = message(loss(&defective, vectors));
        assert!(text.contains("distinct eigenvalues") || text.contains("linearly dependent"), "{text}");
    }
    let f32 = defective.to_dtype(DType::F32).unwrap();
    let text = message(loss(&f32, false));
    assert!(text.contains("linearly dependent"), "{text}");
}

#[test]
fn bad_input() {
    let _one = load(PLUGINS);
    let a = reals(&[2, 3, 3], 0);
    a.select(0, 1).unwrap().select(0, 2).unwrap().fill_(f64::NAN).unwrap();
    for text in [message(a.eig()), message(a.eigvals())] {
        assert!(text.contains("finite elements") && text.contains("at batch index [1]"), "{text}");
    }
    for (text, wanted) in [
        (message(reals(&[2, 3], 0).eig()), "a square matrix"),
        (message(reals(&[3], 0).eigvals()), "a matrix or a batch of matrices"),
        (message(Tensor::ones((2, 2)).unwrap().to_dtype(DType::F16).unwrap().eig()), "f32, f64, c64 or c128"),
    ] {
        assert!(text.contains(wanted), "`{wanted}` in `{text}`");
    }
    let _off = no_grad();
    let twice = Tensor::eye_with(3, 3, DType::F64).unwrap();
    assert_near(&twice.eig().unwrap().1, &twice.to_dtype(DType::C128).unwrap(), 0.0);
}

#[test]
fn gradients_of_real_matrices_are_real() {
    let _one = load(PLUGINS);
    let a = reals(&[3, 3], 0).requires_grad_(true).unwrap();
    a.eig().unwrap().0.abs().unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(a.grad().unwrap().dtype(), DType::F64);
    let run = |all: &[Tensor]| Ok(vec![all[0].eig()?.0.abs()?]);
    assert!(
        gradcheck(&run, &[a.detach().requires_grad_(true).unwrap()], Tolerance::default()).unwrap().is_none()
    );
}
