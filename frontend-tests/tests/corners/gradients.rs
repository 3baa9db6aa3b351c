//! Gradients at kinks and poles, and of arguments of several widths.

use super::{gradient, leaf, near, of, second, values};
use keyway::nn::Reduction;
use keyway::{DType, Result, Tensor};

#[test]
fn logits_of_zero_have_the_slope_of_the_sigmoid() -> Result<()> {
    let x = leaf(&[0.0, 0.0, 1e-30, -60.0, 60.0], DType::F64);
    let target = of(&[1.0, 0.0, 0.0, 1.0, 0.0], DType::F64);
    let loss = |x: &Tensor| x.binary_cross_entropy_with_logits_with(&target, None, None, Reduction::Sum);
    near(&gradient(&loss(&x)?, &x), &[-0.5, 0.5, 0.5, -1.0, 1.0], 1e-15);
    near(&second(&loss(&x)?, &x), &[0.25, 0.25, 0.25, 0.0, 0.0], 1e-15);
    // log(1 + exp(x)) to the last digit where it is nearly x, and where it is nearly 0.
    let each = x.binary_cross_entropy_with_logits_with(&target, None, None, Reduction::None)?;
    near(&values(&each)[3..], &[60.0, 60.0], 0.0);
    let x = of(&[-30.0, -22.0, 22.0], DType::F64);
    let each =
        x.binary_cross_entropy_with_logits_with(&of(&[0.0; 3], DType::F64), None, None, Reduction::None)?;
    near(&values(&each), &[-30.0, -22.0, 22.0].map(|x: f64| x.exp().ln_1p()), 4e-15);
    Ok(())
}

#[test]
fn the_norm_of_zeros_has_the_gradient_zero_for_every_p() -> Result<()> {
    for p in [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
        let x = leaf(&[0.0, 0.0], DType::F64);
        assert_eq!(gradient(&x.norm_with(p, .., false)?, &x), [0.0, 0.0], "p = {p}");
        assert!(second(&x.norm_with(p, .., false)?, &x).iter().all(|v| *v == 0.0), "p = {p}, second");
        let rows = Tensor::from_vec(vec![0.0f32, 0.0, 3.0, 4.0], [2, 2])?.requires_grad_(true)?;
        let made = gradient(&rows.norm_with(p, 1, false)?, &rows);
        assert!(made[..2] == [0.0, 0.0] && made.iter().all(|v| v.is_finite()), "p = {p}: {made:?}");
    }
    Ok(())
}

#[test]
fn a_hypotenuse_of_zero_has_no_gradient_of_any_order() -> Result<()> {
    for dtype in [DType::F64, DType::F32] {
        let (x, y) = (leaf(&[0.0, 3.0, 0.0], dtype), of(&[0.0, 4.0, -2.0], dtype));
        near(&gradient(&x.hypot(&y)?, &x), &[0.0, 0.6, 0.0], 1e-6);
        // y^2 / hypot^3
        near(&second(&x.hypot(&y)?, &x), &[0.0, 16.0 / 125.0, 0.5], 1e-6);
    }
    Ok(())
}

#[test]
fn the_gradient_of_smooth_l1_loss_is_no_number_where_the_loss_is_none() -> Result<()> {
    let target = of(&[0.0; 4], DType::F64);
    for beta in [0.0, 1.0] {
        let x = leaf(&[f64::NAN, 2.0, -2.0, 0.0], DType::F64);
        let grad = gradient(&x.smooth_l1_loss_with(&target, beta, Reduction::Sum)?, &x);
        assert!(grad[0].is_nan() && grad[1..] == [1.0, -1.0, 0.0], "beta {beta}: {grad:?}");
    }
    Ok(())
}

#[test]
fn the_deviation_of_equal_numbers_has_the_gradient_zero() -> Result<()> {
    let x = leaf(&[1234.567; 7], DType::F32);
    assert_eq!(gradient(&x.std_all()?, &x), [0.0; 7]);
    assert_eq!(second(&x.std_all()?, &x), [0.0; 7]);
    Ok(())
}

#[test]
fn a_number_on_a_bound_of_clamp_is_not_held_by_it() -> Result<()> {
    let x = leaf(&[-2.0, -1.0, 0.0, 1.0, 2.0], DType::F64);
    assert_eq!(gradient(&x.clamp(-1.0, 1.0)?, &x), [0.0, 1.0, 1.0, 1.0, 0.0]);
    assert_eq!(gradient(&x.clamp_min(-1.0)?, &x), [0.0, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!(gradient(&x.clamp_max(1)?, &x), [1.0, 1.0, 1.0, 1.0, 0.0]);
    // The upper bound wins where the bounds are in the wrong order, and nothing depends on the elements.
    assert_eq!(gradient(&x.clamp(3.0, -3.0)?, &x), [0.0; 5]);
    Ok(())
}

#[test]
fn hardswish_is_flat_or_straight_at_its_corners() -> Result<()> {
    let x = leaf(&[-4.0, -3.0, 0.0, 3.0, 4.0], DType::F64);
    near(&gradient(&x.hardswish()?, &x), &[0.0, 0.0, 0.5, 1.0, 1.0], 1e-15);
    near(&second(&x.hardswish()?, &x), &[0.0, 0.0, 1.0 / 3.0, 0.0, 0.0], 1e-15);
    Ok(())
}

#[test]
fn probabilities_of_zero_and_one_have_finite_losses_and_gradients() -> Result<()> {
    for dtype in [DType::F64, DType::F32, DType::BF16] {
        let x = leaf(&[0.0, 1.0, 0.0, 1.0, 0.25], dtype);
        let target = of(&[1.0, 0.0, 0.0, 1.0, 1.0], dtype);
        let each = x.binary_cross_entropy_with(&target, None, Reduction::None)?;
        near(&values(&each), &[100.0, 100.0, 0.0, 0.0, 4f64.ln()], 1e-2);
        let (made, expected) = (gradient(&each, &x), [-1e12, 1e12, 0.0, 0.0, -4.0]);
        let close = |(g, e): (&f64, &f64)| (g - e).abs() <= 1e-2 * e.abs();
        assert!(made.iter().zip(&expected).all(close), "{dtype}: {made:?}");
    }
    // The mean divides, a weight multiplies, and what was repeated is summed.
    let x = leaf(&[0.25], DType::F64);
    let (target, weight) = (leaf(&[1.0, 0.0], DType::F64), leaf(&[3.0, 5.0], DType::F64));
    let loss = x.binary_cross_entropy_with(&target, Some(&weight), Reduction::Mean)?;
    near(&gradient(&loss, &x), &[(3.0 * -4.0 + 5.0 / 0.75) / 2.0], 1e-14);
    near(&values(&target.grad().unwrap()), &[1.5 * 3f64.ln(), 2.5 * 3f64.ln()], 1e-14);
    near(&values(&weight.grad().unwrap()), &[0.5 * 4f64.ln(), -0.5 * 0.75f64.ln()], 1e-14);
    Ok(())
}

#[test]
fn gradients_of_mixed_widths_are_computed_in_the_wider_one() -> Result<()> {
    // 3,000 products of 30 in f16: their sum is beyond f16, and f16 holds no single step of it.
    let many = Tensor::full_with([3000], 30.0, (DType::F16, keyway::Device::CPU))?;
    let one = Tensor::new(1.0f32)?.requires_grad_(true)?;
    assert_eq!(gradient(&many.mul(&one)?, &one), [90_000.0]);
    let small = Tensor::full_with([3000], 1.001, (DType::BF16, keyway::Device::CPU))?;
    assert_eq!(values(&small)[0], 1.0);
    let power = Tensor::new(1.0f32)?.requires_grad_(true)?;
    let base = Tensor::full_with([3000], 1000.0, (DType::F16, keyway::Device::CPU))?;
    let made = gradient(&base.pow(&power)?, &power);
    // To a relative error of 1e-6, since the sum is computed in f32.
    near(&made, &[3000.0 * 1000.0 * 1000f64.ln()], 20.0);

    // The logarithm of an f16 base is needed in f32 where the power is.
    let exponent = leaf(&[2.0], DType::F32);
    let base = of(&[1.0009765625], DType::F16);
    near(
        &gradient(&base.pow(&exponent)?, &exponent),
        &[1.0009765625f64.powi(2) * 1.0009765625f64.ln()],
        1e-9,
    );

    let wide = leaf(&[1.0], DType::F32);
    let target = Tensor::full_with([300], 1.0, (DType::BF16, keyway::Device::CPU))?;
    let target = target.requires_grad_(true)?.mul(1.0)?;
    target.mul_(&wide)?;
    assert_eq!(gradient(&target, &wide), [300.0]);
    let third = of(&[1.0 / 3.0], DType::BF16);
    let target = third.copy()?;
    let factor = leaf(&[0.7], DType::F32);
    target.mul_(&factor)?;
    let slope = of(&[0.1], DType::BF16);
    target.mul(&slope)?.sum_all()?.backward()?;
    let (a, b) = (values(&third)[0], values(&slope)[0]);
    near(&values(&factor.grad().unwrap()), &[a * b], 1e-9);

    // The square of 300 is beyond f16.
    let (y, x) = (of(&[300.0], DType::F16), leaf(&[400.0], DType::F32));
    near(&gradient(&y.atan2(&x)?, &x), &[-300.0 / 250_000.0], 1e-9);

    let source = leaf(&[1.0], DType::F32);
    let target = Tensor::full_with([300], 0.0, (DType::BF16, keyway::Device::CPU))?;
    target.copy_(&source)?;
    assert_eq!(gradient(&target.mul(1.0)?, &source), [300.0]);
    let source = leaf(&[1.0], DType::F32);
    let target = Tensor::full_with([70_000], 0.0, (DType::F16, keyway::Device::CPU))?;
    target.copy_(&source)?;
    target.backward_with(keyway::autograd::BackwardOptions {
        gradients: Some(vec![target.ones_like()?]),
        ..Default::default()
    })?;
    assert_eq!(values(&source.grad().unwrap()), [70_000.0]);
    Ok(())
}
