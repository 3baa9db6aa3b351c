//! Checks of derivatives that several test programs share.

use keyway::autograd::gradcheck::{Tolerance, gradcheck, gradgradcheck};
use keyway::{Result, Tensor};

/// Checks the first and second derivatives of a function at f64 or c128 inputs by finite differences.
pub fn check(name: &str, inputs: &[Tensor], f: impl Fn(&[Tensor]) -> Result<Tensor>) {
    let inputs: Vec<Tensor> =
        inputs.iter().map(|t| t.copy().unwrap().requires_grad_(true).unwrap()).collect();
    let f = |inputs: &[Tensor]| Ok(vec![f(inputs)?]);
    let first = gradcheck(&f, &inputs, Tolerance::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(first.is_none(), "{name}: {}", first.unwrap());
    let second = gradgradcheck(&f, &inputs, Tolerance::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(second.is_none(), "{name}, second: {}", second.unwrap());
}
