//! Products, norms and what is computed of them, of numbers whose powers or products are beyond the dtype while results are in it.

use super::{gradient, leaf, of, second, values};
use keyway::optim::clip_grad_norm_;
use keyway::tensor::Reduce;
use keyway::{DType, Result, Tensor};

/// Fails unless the relative error of each value is at most this.
#[track_caller]
fn close(got: &[f64], expected: &[f64], share: f64) {
    let is_close = |(g, e): (&f64, &f64)| g == e || (g - e).abs() <= share * e.abs();
    assert!(
        got.len() == expected.len() && got.iter().zip(expected).all(is_close),
        "{got:?} is not {expected:?}"
    );
}

#[test]
fn gradients_of_products_whose_quotients_leave_the_range() -> Result<()> {
    for (dtype, x, slopes) in [
        (DType::F16, vec![300.0, 300.0], vec![300.0, 300.0]),
        (DType::F16, vec![300.0, 300.0, 0.001], vec![0.3, 0.3, f64::INFINITY]),
        (DType::F32, vec![1e-30, 1e-30, 1.0], vec![1e-30, 1e-30, 0.0]),
        (DType::F32, vec![1e25, 1e25], vec![1e25, 1e25]),
        (DType::F64, vec![1e-200, 1e-200, 2.0], vec![2e-200, 2e-200, 0.0]),
        (DType::F32, vec![0.0, 3.0, 2.0], vec![6.0, 0.0, 0.0]),
    ] {
        let leaf = leaf(&x, dtype);
        let share = if dtype == DType::F16 { 2e-3 } else { 1e-6 };
        close(&gradient(&leaf.prod(0)?, &leaf), &slopes, share);
        close(&gradient(&leaf.unsqueeze(0)?.prod_keepdim(1)?, &leaf), &slopes, share);
        let at = Tensor::zeros_with(x.len(), DType::I64)?;
        for include in [true, false] {
            let one = of(&[1.0], dtype);
            let scattered = one.scatter_reduce_with(0, &at, &leaf, Reduce::Prod, include)?;
            close(&gradient(&scattered, &leaf), &slopes, share);
            let indexed = one.index_reduce_with(0, &at, &leaf, Reduce::Prod, include)?;
            close(&gradient(&indexed, &leaf), &slopes, share);
        }
    }
    let small = leaf(&[1e-30, 1e-30, 1.0], DType::F32);
    close(&second(&small.prod(0)?, &small), &[1.0, 1.0, 2e-30], 1e-6);
    Ok(())
}

#[test]
fn gradients_of_running_products_whose_quotients_leave_the_range() -> Result<()> {
    // The expected gradient of element i: the sum over k >= i of the product of all elements up to k except i.
    let expected = |x: &[f64]| -> Vec<f64> {
        let product = |i: usize, k: usize| (0..=k).filter(|j| *j != i).map(|j| x[j]).product::<f64>();
        (0..x.len()).map(|i| (i..x.len()).map(|k| product(i, k)).sum()).collect()
    };
    for (dtype, x) in [
        (DType::F32, vec![1e-30, 1e-30, 1.0, 2.0]),
        (DType::F32, vec![0.0, 3.0, 0.0, 2.0, 5.0]),
        (DType::F32, vec![1e20, 1e-30, 1e20, 1e-15]),
        (DType::F16, vec![0.002, 0.002, 0.25, 300.0]),
        (DType::BF16, vec![1.5, -0.5, 2.0]),
        (DType::F64, vec![1e-200, 1e-200, 3.0]),
        (DType::F64, vec![1.5, -0.5, 2.0, 0.75, -3.0, 0.1, 1.0]),
    ] {
        let share = [(DType::F16, 2e-3), (DType::BF16, 1e-2), (DType::F32, 1e-6), (DType::F64, 1e-14)];
        let share = share.iter().find(|(of, _)| *of == dtype).unwrap().1;
        let leaf = leaf(&x, dtype);
        let held = values(&leaf.detach());
        // Values that underflow the dtype are 0.
        let slopes = values(&of(&expected(&held), dtype));
        close(&gradient(&leaf.cumprod(0)?, &leaf), &slopes, share);
        let columns = leaf.unsqueeze(1)?.expand((x.len(), 2))?;
        let twice: Vec<f64> = slopes.iter().map(|slope| 2.0 * slope).collect();
        close(&gradient(&columns.cumprod(0)?, &leaf), &twice, share);
    }
    Ok(())
}

/// A dtype, a power, elements, their norm, and what the results may be off by.
const NORMS: [(DType, f64, [f64; 3], f64, f64); 14] = [
    (DType::F32, 2.0, [1e20, 1.0, 1.0], 1e20, 1e-6),
    (DType::F32, 2.0, [3e25, 0.0, -4e25], 5e25, 1e-6),
    (DType::F32, 2.0, [1e-25, 1e-25, 1e-25], 1.732_050_8e-25, 1e-6),
    (DType::F32, 2.0, [3e-44, 0.0, 4e-44], 5e-44, 0.05),
    (DType::F32, 2.0, [2e38, 2e38, 0.0], 2.828_427_1e38, 1e-6),
    (DType::F32, 2.0, [0.0, 0.0, 0.0], 0.0, 0.0),
    (DType::F64, 2.0, [3e200, 0.0, 4e200], 5e200, 1e-14),
    (DType::F64, 2.0, [3e-200, 0.0, 4e-200], 5e-200, 1e-14),
    (DType::BF16, 2.0, [3e25, 0.0, -4e25], 5e25, 1e-2),
    (DType::BF16, 2.0, [3e-30, 0.0, -4e-30], 5e-30, 1e-2),
    (DType::F16, 2.0, [3e4, 0.0, -4e4], 5e4, 1e-3),
    (DType::F32, 3.0, [1e20, 1e20, 0.0], 1.259_921_05e20, 1e-6),
    (DType::F32, 1.5, [1e-38, 1e-38, 0.0], 1.587_401_05e-38, 1e-5),
    (DType::F32, -2.0, [1e-25, 1e-25, 1.0], 7.071_067_8e-26, 1e-6),
];

#[test]
fn norms_whose_powers_leave_the_range() -> Result<()> {
    for (dtype, p, x, norm, share) in NORMS {
        let row = leaf(&x, dtype);
        close(&values(&row.norm_with(p, 0, false)?.detach()), &[norm], share);
        // Beside lines of other sizes, along either dimension, and of many equal ones.
        let ones = of(&[1.0, 2.0, 2.0], dtype);
        let rows = Tensor::stack(&[&ones, &row.detach(), &ones], 0)?;
        let plain = values(&ones.norm_with(p, 0, false)?)[0];
        close(&values(&rows.norm_with(p, 1, false)?), &[plain, norm, plain], share);
        close(&values(&rows.t()?.contiguous()?.norm_with(p, 0, false)?), &[plain, norm, plain], share);
        assert_eq!(values(&rows.norm_with(p, 1, false)?)[0], plain, "{dtype} {p}");
        if p == 2.0 && norm > 0.0 {
            let slopes: Vec<f64> = values(&row.detach()).iter().map(|x| x / norm).collect();
            close(&gradient(&row.norm(0)?, &row), &slopes, share.max(1e-3));
            let (zero, point) = (Tensor::zeros_with((1, 3), dtype)?, row.unsqueeze(0)?);
            close(&values(&point.cdist(&zero)?.detach()), &[norm], share);
        }
    }
    let many = Tensor::full_with(70_000, 1e-25, DType::F32)?;
    close(&values(&many.norm_all()?), &[1e-25 * 70_000f64.sqrt()], 1e-5);
    let infinite = Tensor::new([1e20f32, f32::INFINITY])?;
    assert_eq!(infinite.norm(0)?.item::<f32>()?, f32::INFINITY);
    assert!(Tensor::new([1e20f32, f32::NAN])?.norm(0)?.item::<f32>()?.is_nan());
    Ok(())
}

#[test]
fn directions_of_vectors_whose_squares_leave_the_range() -> Result<()> {
    for size in [1e-10, 1.0, 1e20, 1e30] {
        let x = leaf(&[3.0 * size, 4.0 * size], DType::F32);
        close(&values(&x.normalize(0)?.detach()), &[0.6, 0.8], 1e-6);
        let y = of(&[4.0 * size, 3.0 * size], DType::F32);
        if size >= 1.0 {
            close(&values(&x.cosine_similarity(&y, 0)?.detach()), &[0.96], 1e-6);
        }
        // The gradient of the first part of the direction: (1 - 0.36) / |x| and -0.48 / |x|.
        let first = x.normalize(0)?.narrow(0, 0, 1)?;
        close(&gradient(&first, &x), &[0.128 / size, -0.096 / size], 1e-5);
    }
    let x = leaf(&[1e20, -1e20, 2e20], DType::F32);
    close(&values(&x.std_with(0, 0.0, false)?.detach()), &[1.247_219_1e20], 1e-6);
    Ok(())
}

#[test]
fn clipping_keeps_the_direction_of_large_and_small_gradients() -> Result<()> {
    for (dtype, size, share) in [
        (DType::F32, 1e25, 1e-6),
        (DType::F32, 1e-25, 1e-6),
        (DType::BF16, 1e25, 1e-2),
        (DType::F16, 1e4, 1e-3),
        (DType::F64, 1e200, 1e-12),
    ] {
        let leaves = [leaf(&[0.0, 0.0], dtype), leaf(&[0.0], dtype)];
        leaves[0].set_grad(of(&[2.0 * size, size], dtype))?;
        leaves[1].set_grad(of(&[-2.0 * size], dtype))?;
        let norm = clip_grad_norm_(&leaves, 1.5)?;
        close(&values(&norm), &[3.0 * size], share);
        let factor = (1.5 / (3.0 * size + 1e-6)).min(1.0);
        close(&values(&leaves[0].grad().unwrap()), &[2.0 * size * factor, size * factor], share);
        close(&values(&leaves[1].grad().unwrap()), &[-2.0 * size * factor], share);
    }
    Ok(())
}
