//! Values and gradients at kinks, poles and limits of formulas, and at the limits of dtypes, compared with those of
//! PyTorch, NumPy or a wider dtype.

mod arguments;
mod counts;
mod gradients;
mod infinite;
mod modes;
mod moments;
mod numbers;
mod products;

use keyway::{DType, Tensor};

/// A leaf of this dtype that collects gradients.
fn leaf(values: &[f64], dtype: DType) -> Tensor {
    Tensor::new(values).unwrap().to_dtype(dtype).unwrap().requires_grad_(true).unwrap()
}

/// A tensor of this dtype.
fn of(values: &[f64], dtype: DType) -> Tensor {
    Tensor::new(values).unwrap().to_dtype(dtype).unwrap()
}

/// The elements as f64.
fn values(t: &Tensor) -> Vec<f64> {
    t.to_vec_f64().unwrap()
}

/// The gradient of the sum of `y` that `x` has collected, which is cleared.
fn gradient(y: &Tensor, x: &Tensor) -> Vec<f64> {
    y.sum_all().unwrap().backward().unwrap();
    let grad = values(&x.grad().unwrap());
    x.zero_grad();
    grad
}

/// The second derivative of the sum of `y` by `x`, where each element of `y` depends on the same element of `x` alone.
fn second(y: &Tensor, x: &Tensor) -> Vec<f64> {
    use keyway::autograd::{BackwardOptions, grad};
    let options = || BackwardOptions { create_graph: true, ..Default::default() };
    let first = grad(&[y.sum_all().unwrap()], std::slice::from_ref(x), options()).unwrap().remove(0).unwrap();
    if !first.requires_grad() {
        return vec![0.0; x.elem_count()];
    }
    let second =
        grad(&[first.sum_all().unwrap()], std::slice::from_ref(x), options()).unwrap().remove(0).unwrap();
    values(&second)
}

/// Fails unless each pair of values differs by at most `tolerance`.
#[track_caller]
fn near(got: &[f64], expected: &[f64], tolerance: f64) {
    let close = |(g, e): (&f64, &f64)| g == e || (g - e).abs() <= tolerance;
    assert!(
        got.len() == expected.len() && got.iter().zip(expected).all(close),
        "{got:?} is not {expected:?}"
    );
}
