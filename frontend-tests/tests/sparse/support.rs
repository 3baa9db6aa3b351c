//! Shared code of the tests of sparse tensors: tensors of plain values, and derivatives checked twice.

use keyway::Tensor;
use keyway::autograd::gradcheck::{Tolerance, gradcheck, gradgradcheck};

/// The library that serves them.
pub const PLUGINS: &[&str] = &["keyway_backend_sparse"];

pub fn ints(values: &[i64], sizes: &[usize]) -> Tensor {
    Tensor::from_vec(values.to_vec(), sizes).unwrap()
}

pub fn floats(values: &[f64], sizes: &[usize]) -> Tensor {
    Tensor::from_vec(values.to_vec(), sizes).unwrap()
}

/// The elements, those that are not stored too.
pub fn f64s(t: &Tensor) -> Vec<f64> {
    t.to_dense().unwrap().to_vec_f64().unwrap()
}

/// An f64 leaf that requires a gradient.
pub fn leaf(values: &[f64], sizes: &[usize]) -> Tensor {
    floats(values, sizes).requires_grad_(true).unwrap()
}

pub type Function<'a> = dyn Fn(&[Tensor]) -> keyway::Result<Vec<Tensor>> + 'a;

/// Compares the first and the second derivatives with differences.
#[track_caller]
pub fn check(name: &str, function: &Function<'_>, inputs: &[Tensor]) {
    for (order, found) in [
        ("first", gradcheck(&function, inputs, Tolerance::default())),
        ("second", gradgradcheck(&function, inputs, Tolerance::default())),
    ] {
        if let Some(mismatch) = found.unwrap_or_else(|e| panic!("{name}, {order}: {e}")) {
            panic!("{name}, {order}: {mismatch}");
        }
    }
}
