//! The effect of `float32_matmul_precision` on the CPU: convolutions of f32 with larger Winograd tiles have other last
//! digits, and nothing else changes. The setting is process-wide, so the tests of this program run one at a time.

mod rehearsal_support;

use keyway::dispatcher::parallel::set_num_threads;
use keyway::nn::{Activation, ConvOptions};
use keyway::{DType, MatmulPrecision, MemoryFormat, Result, Tensor, set_float32_matmul_precision};
use rehearsal_support::load;
use std::sync::MutexGuard;

const FORMATS: [MemoryFormat; 2] = [MemoryFormat::Contiguous, MemoryFormat::ChannelsLast];
/// Enough channels and pixels for larger tiles, the last of which are cut in both directions.
const IMAGE: [usize; 4] = [2, 32, 30, 27];
const KERNELS: [usize; 4] = [40, 32, 3, 3];
/// The error bound relative to the largest result.
const BOUND: f64 = 5e-6;

fn start() -> MutexGuard<'static, ()> {
    load(&["keyway_backend_channels_last"])
}

/// Deterministic pseudo-random values in -0.5..0.5.
fn random(sizes: &[usize], seed: u64) -> Result<Tensor> {
    let number =
        |i: u64| ((i + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f32 / (1 << 24) as f32 - 0.5;
    Tensor::from_vec((0..sizes.iter().product::<usize>() as u64).map(number).collect(), sizes)
}

fn padded() -> ConvOptions<2> {
    ConvOptions::default().padding(1)
}

/// Runs a computation with a setting.
fn with<T>(precision: MatmulPrecision, compute: impl FnOnce() -> Result<T>) -> Result<T> {
    set_float32_matmul_precision(precision);
    let made = compute();
    set_float32_matmul_precision(MatmulPrecision::Highest);
    made
}

/// The bits of the elements.
fn bits(tensor: &Tensor) -> Result<Vec<u64>> {
    Ok(tensor.to_vec_f64()?.into_iter().map(f64::to_bits).collect())
}

/// Result, input gradient and weight gradient.
fn convolved(dtype: DType, format: MemoryFormat) -> Result<[Tensor; 3]> {
    let tracked = |sizes: &[usize], seed| -> Result<Tensor> {
        random(sizes, seed)?.to_dtype(dtype)?.to(format)?.requires_grad_(true)
    };
    let (x, weight) = (tracked(&IMAGE, 1)?, tracked(&KERNELS, 2)?);
    let bias = random(&KERNELS[..1], 3)?.to_dtype(dtype)?;
    let y = x.conv2d_with(&weight, Some(&bias), padded())?;
    y.mul(&random(y.shape(), 4)?.to_dtype(dtype)?.to(format)?)?.sum_all()?.backward()?;
    Ok([y.detach(), x.grad().unwrap(), weight.grad().unwrap()])
}

/// The largest difference beside the largest number that is expected.
fn error(got: &Tensor, exact: &Tensor) -> Result<f64> {
    let (got, exact) = (got.to_vec_f64()?, exact.to_vec_f64()?);
    let largest = exact.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    Ok(got.iter().zip(&exact).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / largest)
}

#[test]
fn convolutions_and_their_gradients_differ_within_the_bound() -> Result<()> {
    let _guard = start();
    let exact = convolved(DType::F64, MemoryFormat::Contiguous)?;
    for format in FORMATS {
        let before = convolved(DType::F32, format)?;
        let high = with(MatmulPrecision::High, || convolved(DType::F32, format))?;
        let after = convolved(DType::F32, format)?;
        for (i, what) in ["result", "input gradient", "weight gradient"].iter().enumerate() {
            let error = error(&high[i], &exact[i])?;
            assert!(error < BOUND, "{what}, {format:?}: {error:e}");
            assert_eq!(bits(&before[i])?, bits(&after[i])?, "{what}, {format:?}: not as before");
            assert_ne!(bits(&before[i])?, bits(&high[i])?, "{what}, {format:?}");
        }
    }
    Ok(())
}

#[test]
fn both_formats_and_any_number_of_threads_give_the_same_bits() -> Result<()> {
    let _guard = start();
    let made = |threads, format| -> Result<Vec<Vec<u64>>> {
        set_num_threads(threads);
        let made = with(MatmulPrecision::High, || convolved(DType::F32, format));
        set_num_threads(0);
        made?.iter().map(bits).collect()
    };
    let expected = made(1, MemoryFormat::ChannelsLast)?;
    for (threads, format) in [1, 2, 3, 7].into_iter().flat_map(|n| FORMATS.map(|format| (n, format))) {
        assert_eq!(made(threads, format)?, expected, "{threads} threads, {format:?}");
    }
    Ok(())
}

#[test]
fn what_follows_a_convolution_follows_it() -> Result<()> {
    let _guard = start();
    for format in FORMATS {
        let made = |dtype| -> Result<Tensor> {
            let of = |sizes: &[usize], seed| random(sizes, seed)?.to_dtype(dtype)?.to(format);
            let (x, weight, add) = (of(&IMAGE, 1)?, of(&KERNELS, 2)?, of(&[2, 40, 30, 27], 5)?);
            x.conv2d_act(&weight, None, Some(&add), Activation::Relu, padded())
        };
        let (exact, highest) = (made(DType::F64)?, made(DType::F32)?);
        let high = with(MatmulPrecision::High, || made(DType::F32))?;
        assert!(error(&high, &exact)? < BOUND, "{format:?}");
        assert_ne!(bits(&high)?, bits(&highest)?, "{format:?}");
    }
    Ok(())
}

#[test]
fn nothing_else_changes() -> Result<()> {
    let _guard = start();
    let all = || -> Result<Vec<Vec<u64>>> {
        let mut made = Vec::new();
        for format in FORMATS {
            for dtype in [DType::F64, DType::F16, DType::BF16] {
                made.extend(convolved(dtype, format)?);
            }
            let x = random(&IMAGE, 1)?.to(format)?;
            // Other strides, kernels and groups; few channels; few pixels.
            let options = [padded().stride(2), padded().groups(2), padded().dilation(2)];
            for (options, channels) in options.into_iter().zip([32, 16, 32]) {
                let weight = random(&[40, channels, 3, 3], 2)?.to(format)?;
                made.push(x.conv2d_with(&weight, None, options)?);
            }
            made.push(x.conv2d(&random(&[40, 32, 5, 5], 2)?.to(format)?, None)?);
            made.push(x.conv2d(&random(&[40, 32, 1, 1], 2)?.to(format)?, None)?);
            let few = x.narrow(1, 0, 8)?.contiguous_in(format)?;
            made.push(few.conv2d(&random(&[40, 8, 3, 3], 2)?.to(format)?, None)?);
            let small = x.narrow(2, 0, 5)?.contiguous_in(format)?;
            made.push(small.conv2d_with(&random(&KERNELS, 2)?.to(format)?, None, padded())?);
        }
        made.push(random(&[70, 90], 6)?.mm(&random(&[90, 80], 7)?)?);
        made.iter().map(bits).collect()
    };
    assert!(all()? == with(MatmulPrecision::High, all)?);
    Ok(())
}

/// Infinities and numbers that no algorithm takes go to the direct kernel with either setting; those that are large for
/// larger tiles alone, with one.
#[test]
fn infinities_and_large_numbers_are_summed_directly() -> Result<()> {
    let _guard = start();
    let weight = random(&KERNELS, 2)?;
    let with_number = |number: f32, format| -> Result<[Vec<f32>; 2]> {
        let mut values = random(&IMAGE, 1)?.to_vec::<f32>()?;
        values[12_345] = number;
        let (x, weight) = (Tensor::from_vec(values, IMAGE)?.to(format)?, weight.to(format)?);
        let compute = || x.conv2d_with(&weight, None, padded())?.to_vec::<f32>();
        Ok([compute()?, with(MatmulPrecision::High, compute)?])
    };
    for format in FORMATS {
        for number in [f32::INFINITY, f32::NAN, -1e20] {
            let [highest, high] = with_number(number, format)?;
            let same = highest.iter().zip(&high).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{number}, {format:?}");
        }
        let [highest, high] = with_number(1e12, format)?;
        let near = highest.iter().zip(&high).all(|(a, b)| (a - b).abs() <= 1e6);
        assert!(near && highest != high, "{format:?}");
    }
    Ok(())
}
