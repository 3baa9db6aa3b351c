//! Variances and normalisations of equal values, and of large values with small differences.

use super::{near, values};
use keyway::MemoryFormat;
use keyway::{DType, Result, Tensor};

fn rows(values: impl Fn(usize) -> f64, sizes: &[usize]) -> Tensor {
    let count = sizes.iter().product();
    Tensor::from_vec((0..count).map(|i| values(i) as f32).collect(), sizes).unwrap()
}

/// Mean and variance of each row of f32 values, computed in f64 relative to the first value, which is precise enough.
fn moments(x: &Tensor) -> Vec<(f64, f64)> {
    let n = *x.shape().last().unwrap();
    let of = |row: &[f64]| {
        let mean = row[0] + row.iter().map(|x| x - row[0]).sum::<f64>() / n as f64;
        (mean, row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64)
    };
    values(x).chunks(n).map(of).collect()
}

#[test]
fn equal_numbers_do_not_vary() -> Result<()> {
    for sizes in [[3, 7], [3, 1000], [1, 200_000], [200, 40]] {
        let x = rows(|_| 1234.567, &sizes);
        for dim in [0, 1] {
            let made = [x.var_with(dim, 0.0, false)?, x.std_with(dim, 0.0, false)?];
            made.iter()
                .for_each(|t| assert!(values(t).iter().all(|v| *v == 0.0), "{sizes:?}, dimension {dim}"));
        }
        let last = [sizes[1] as i64];
        assert!(values(&x.layer_norm(last, None, None)?).iter().all(|v| *v == 0.0), "{sizes:?}");
        let leaf = x.copy()?.requires_grad_(true)?;
        leaf.layer_norm(last, None, None)?.mul(&leaf.detach())?.sum_all()?.backward()?;
        assert!(values(&leaf.grad().unwrap()).iter().all(|v| v.is_finite()));
    }
    for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
        let x = rows(|_| 1234.567, &[4, 6, 5, 5]).to_dtype(dtype)?;
        let weight = Tensor::ones_with([6], dtype)?;
        let bias = Tensor::full_with([6], 0.25, dtype)?;
        let (w, b) = (Some(&weight), Some(&bias));
        for x in [x.clone(), x.to(MemoryFormat::ChannelsLast)?] {
            let made = [
                (x.batch_norm(None, None, None, true, 0.1, 1e-5)?, 0.0),
                (x.batch_norm(None, w, b, true, 0.1, 1e-5)?, 0.25),
                (x.instance_norm(w, None)?, 0.0),
                (x.group_norm(2, w, b)?, 0.25),
                (x.group_norm(3, None, None)?, 0.0),
            ];
            for (k, (made, expected)) in made.iter().enumerate() {
                let off = values(made).iter().map(|v| (v - expected).abs()).fold(0.0, f64::max);
                assert!(off < 1e-6, "norm {k} of {dtype} is off by {off}");
            }
        }
    }
    Ok(())
}

#[test]
fn large_numbers_that_differ_little_keep_their_digits() -> Result<()> {
    let near_10000 = |i: usize| 1e4 + (i as f64 * 0.7).sin();
    let outlier_first = |i: usize| if i == 0 { 1e6 } else { (i as f64 * 0.7).sin() };
    // A sum of squares in f32 loses digits beside one that is a million times the others.
    let cases =
        [("large", rows(near_10000, &[5, 999]), 1e-6), ("outlier", rows(outlier_first, &[1, 999]), 4e-6)];
    for (what, x, tolerance) in cases {
        let expected = moments(&x);
        let var = values(&x.var_with(1, 0.0, false)?);
        for (got, (_, var)) in var.iter().zip(&expected) {
            assert!((got / var - 1.0).abs() < tolerance, "{what}: variance {got} is not {var}");
        }
        let transposed = x.t()?.contiguous()?;
        near(&values(&transposed.var_with(0, 0.0, false)?), &var, 2.0 * tolerance * var[0]);
        let numbers = values(&x);
        let normal = |i: usize| {
            let (mean, var) = expected[i / 999];
            (numbers[i] - mean) / (var + 1e-5).sqrt()
        };
        let normal: Vec<f64> = (0..numbers.len()).map(normal).collect();
        let check = |made: Tensor| {
            for (got, expected) in values(&made).iter().zip(&normal) {
                let off = (got - expected).abs();
                assert!(off <= 4e-6 * expected.abs().max(1.0), "{what}: {got} is not {expected}");
            }
        };
        check(x.layer_norm([999], None, None)?);
        // Each row as the single channel of a sample, and as a group.
        let images = x.reshape([1, -1, 999])?;
        check(images.batch_norm(None, None, None, true, 0.1, 1e-5)?);
        check(images.instance_norm(None, None)?);
        check(images.group_norm(images.shape()[1] as i64, None, None)?);
        // The gradient of half the variance times the number of elements is what differs from the mean.
        let leaf = x.copy()?.requires_grad_(true)?;
        leaf.var_with(1, 0.0, false)?.mul(999.0 / 2.0)?.sum_all()?.backward()?;
        let distances: Vec<f64> = (0..numbers.len()).map(|i| numbers[i] - expected[i / 999].0).collect();
        let scale = distances.iter().fold(0.0f64, |a, d| a.max(d.abs()));
        near(&values(&leaf.grad().unwrap()), &distances, 1e-6 * scale);
    }
    Ok(())
}

#[test]
fn infinities_and_nothing_have_no_variance() -> Result<()> {
    for x in [f32::INFINITY, f32::NAN] {
        let x = Tensor::new([x, 1.0, 2.0])?;
        assert!(x.var_all()?.item::<f32>()?.is_nan());
        assert!(values(&x.layer_norm([3], None, None)?).iter().all(|v| v.is_nan()));
    }
    let x = Tensor::new([1.0f32, f32::INFINITY])?;
    assert!(x.var_all()?.item::<f32>()?.is_nan());
    assert!(Tensor::new::<[f32; 0]>([])?.var_all()?.item::<f32>()?.is_nan());
    assert!(Tensor::new([5.0f32])?.var_all()?.item::<f32>()?.is_nan());
    assert_eq!(Tensor::new([5.0f32])?.var_with(.., 0.0, false)?.item::<f32>()?, 0.0);
    Ok(())
}
