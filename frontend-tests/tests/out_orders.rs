//! `out=` whose dimensions have another order in memory than the result's, of several matrices and images.

use keyway::nn::ConvOptions;
use keyway::ops::by_name;
use keyway::prelude::*;
use keyway::{Arg, Result};

/// An output of these sizes whose dimensions have this order in memory, outermost first, filled with a value that no result
/// has, between 64 elements on both sides.
struct Target {
    whole: Tensor,
    out: Tensor,
}

impl Target {
    fn new(sizes: &[usize], order: &[usize], dtype: DType) -> Result<Target> {
        let count = sizes.iter().product::<usize>();
        let whole = Tensor::full_with(count + 128, -77.0, dtype)?;
        let mut strides = vec![0; sizes.len()];
        let mut next = 1;
        for &dim in order.iter().rev() {
            strides[dim] = next;
            next *= sizes[dim];
        }
        let out = whole.as_strided_with(sizes, strides.as_slice(), 64)?;
        Ok(Target { whole, out })
    }

    /// Checks the values, and that nothing beside them was written.
    fn check(&self, expected: &Tensor, what: &str) -> Result<()> {
        let largest = expected.to_vec_f64()?.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        for (got, expected) in self.out.to_vec_f64()?.iter().zip(expected.to_vec_f64()?) {
            assert!((got - expected).abs() <= 1e-2 * largest, "{what}: {got} for {expected}");
        }
        let whole = self.whole.to_vec_f64()?;
        let (before, after) = (&whole[..64], &whole[whole.len() - 64..]);
        assert!(before.iter().chain(after).all(|&v| v == -77.0), "{what}: written outside of the output");
        Ok(())
    }
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let longer = |rest: Vec<usize>| {
        (0..n).map(move |at| {
            let mut order = rest.clone();
            order.insert(at, n - 1);
            order
        })
    };
    permutations(n - 1).into_iter().flat_map(longer).collect()
}

/// Small integers, different from their neighbours.
fn numbers(sizes: &[usize], dtype: DType) -> Result<Tensor> {
    let count = sizes.iter().product::<usize>() as i64;
    Tensor::arange(0, count)?.mul(7)?.remainder(11)?.sub(5)?.reshape(sizes)?.to_dtype(dtype)
}

#[test]
fn batches_of_products_go_to_outputs_of_every_order() -> Result<()> {
    for (m, k, n) in [(2, 1, 2), (1, 3, 2), (2, 3, 1), (3, 4, 2), (17, 33, 19)] {
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64] {
            let (a, b) = (numbers(&[3, m, k], dtype)?, numbers(&[3, k, n], dtype)?);
            let input = numbers(&[3, m, n], dtype)?;
            let product = |i: usize| a.select(0, i)?.mm(&b.select(0, i)?);
            let expected = Tensor::stack(&[product(0)?, product(1)?, product(2)?], 0)?;
            for order in permutations(3) {
                let what = format!("{m}x{k}x{n} {dtype} {order:?}");
                let target = Target::new(&[3, m, n], &order, dtype)?;
                by_name::call_out("bmm", &[Arg::from(&a), Arg::from(&b)], &[&target.out])?;
                target.check(&expected, &what)?;
                let target = Target::new(&[3, m, n], &order, dtype)?;
                by_name::call_out(
                    "baddbmm",
                    &[Arg::from(&input), Arg::from(&a), Arg::from(&b)],
                    &[&target.out],
                )?;
                target.check(&expected.add(&input)?, &what)?;
            }
        }
    }
    Ok(())
}

#[test]
fn convolutions_go_to_outputs_of_every_order() -> Result<()> {
    // Sizes that are equal, so that the stride of one dimension is the size of another; whole register tiles, and images that
    // Winograd's transform is taken for; depthwise.
    for (batch, channels, size, kernel, groups) in [
        (2, 2, 3, 2, 1),
        (2, 3, 4, 3, 1),
        (2, 4, 2, 1, 1),
        (3, 16, 3, 3, 1),
        (2, 64, 16, 3, 1),
        (2, 64, 16, 1, 1),
        (16, 16, 16, 3, 16),
        (2, 32, 18, 3, 8),
    ] {
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            let out = size + 1 - kernel;
            let image = numbers(&[batch, channels, size, size], dtype)?;
            let weight = numbers(&[channels, channels / groups, kernel, kernel], dtype)?;
            let options = ConvOptions { groups, ..ConvOptions::default() };
            let expected = image.conv2d_with(&weight, None, options)?;
            for order in permutations(4) {
                let what = format!("{batch} {channels} {size} {kernel} {groups} {dtype} {order:?}");
                let target = Target::new(&[batch, channels, out, out], &order, dtype)?;
                let lists: [&[i64]; 3] = [&[1, 1], &[0, 0], &[1, 1]];
                let args = [
                    Arg::from(&image),
                    Arg::from(&weight),
                    Arg::None,
                    Arg::Ints(lists[0]),
                    Arg::Ints(lists[1]),
                    Arg::Ints(lists[2]),
                    Arg::Int(groups as i64),
                ];
                by_name::call_out("conv", &args, &[&target.out])?;
                target.check(&expected, &what)?;
            }
        }
    }
    Ok(())
}
