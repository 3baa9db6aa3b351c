//! Gradients at kinks and poles, and of arguments of several widths.

use super::{gradient, leaf, near, of, second, values};
use keyway::{DType, Result, Tensor};

#[test]
fn logits_of_zero_have_the_slope_of_the_sigmoid() -> Result<()> {
    let x = leaf(&[0.0, 0.0, 1e-30, -60.0, 60.0], DType::F64);
    let target = of(&[1.0, 0.0, 0.0, 1.0, 0.0], DType::F64);
    let loss = |x: &Tensor| x.binary_cross_entropy_with_logits(&target, None, None, "sum");
    near(&gradient(&loss(&x)?, &x), &[-0.5, 0.5, 0.5, -1.0, 1.0], 1e-15);
    near(&second(&loss(&x)?, &x), &[0.25, 0.25, 0.25, 0.0, 0.0], 1e-15);
    // log(1 + exp(x)) to the last digit where it is nearly x, and where it is nearly 0.
    let each = x.binary_cross_entropy_with_logits(&target, None, None, "none")?;
    near(&values(&each)[3..], &[60.0, 60.0], 0.0);
    let x = of(&[-30.0, -22.0, 22.0], DType::F64);
    let each = x.binary_cross_entropy_with_logits(&of(&[0.0; 3], DType::F64), None, None, "none")?;
    near(&values(&each), &[-30.0, -22.0, 22.0].map(|x: f64| x.exp().ln_1p()), 4e-15);
    Ok(())
}
