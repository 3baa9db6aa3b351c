//! Gradients of numbers near the ends of their types, where a formula's parts are beyond them and its result is not.

mod rehearsal_support;

use keyway::autograd::{self, BackwardOptions};
use keyway::{DType, Result, Tensor};
use rehearsal_support::load;

fn leaf(values: &[f64], dtype: DType) -> Result<Tensor> {
    Tensor::new(values)?.to_dtype(dtype)?.detach().requires_grad_(true)
}

/// The gradient of a sum, and that of the sum of this.
fn both(x: &Tensor, y: &Tensor) -> Result<[Vec<f64>; 2]> {
    let options = BackwardOptions { create_graph: true, ..Default::default() };
    let first = autograd::grad(&[&y.sum_all()?], &[x], options)?.remove(0).unwrap();
    let second = autograd::grad(&[&first.sum_all()?], &[x], BackwardOptions::default())?.remove(0).unwrap();
    Ok([first.to_f64_vec()?, second.to_f64_vec()?])
}

#[track_caller]
fn near(got: &[f64], wanted: &[f64], share: f64) {
    assert_eq!(got.len(), wanted.len());
    let close =
        |(got, wanted): (&f64, &f64)| (got - wanted).abs() <= share * wanted.abs() + f64::MIN_POSITIVE;
    assert!(got.iter().zip(wanted).all(close), "{got:?}, not {wanted:?}");
}

#[test]
fn elu_keeps_the_digits_of_small_slopes() -> Result<()> {
    let _guard = load(&[]);
    for (dtype, x, share) in [
        (DType::BF16, -8.0, 0.02),
        (DType::F16, -8.0, 2e-3),
        (DType::F32, -17.0, 1e-6),
        (DType::F64, -40.0, 1e-14),
    ] {
        let x_ = leaf(&[x, 3.0], dtype)?;
        let [first, second] = both(&x_, &x_.elu()?)?;
        near(&first, &[x.exp(), 1.0], share);
        near(&second, &[x.exp(), 0.0], share);
    }
    Ok(())
}

/// The reciprocal of a norm that f16 holds may be beyond f16.
#[test]
fn norms_and_deviations_of_small_numbers_have_gradients_in_f16() -> Result<()> {
    let _guard = load(&[]);
    let x = leaf(&[1e-5, 5e-6], DType::F16)?;
    let [a, b] = [x.to_f64_vec()?[0], x.to_f64_vec()?[1]];
    let norm = x.norm(0)?;
    let rounded = norm.to_f64_vec()?[0];
    norm.backward()?;
    near(&x.grad().unwrap().to_f64_vec()?, &[a / rounded, b / rounded], 2e-3);
    let x = leaf(&[1e-5, 5e-6, 2e-5], DType::F16)?;
    x.std(0)?.backward()?;
    let grad = x.grad().unwrap().to_f64_vec()?;
    assert!(grad.iter().all(|g| g.abs() < 1.0) && grad[2] > 0.0 && grad[1] < 0.0, "{grad:?}");
    Ok(())
}

/// Beside a large element a small one has no say, and is no reason for a NaN.
#[test]
fn powers_in_norms_have_second_derivatives_beside_small_numbers() -> Result<()> {
    let _guard = load(&[]);
    for (dtype, small) in [(DType::F16, 1e-5), (DType::F32, 1e-39), (DType::F64, 1e-310)] {
        for p in [1.5, 3.0, 4.0] {
            let x = leaf(&[1.0, small], dtype)?;
            let made = both(&x, &x.norm_with(p, 0, false)?)?;
            assert!(made.concat().iter().all(|g| g.is_finite()), "{dtype} {p}: {made:?}");
            assert!((made[0][0] - 1.0).abs() < 1e-3, "{made:?}");
        }
    }
    Ok(())
}
