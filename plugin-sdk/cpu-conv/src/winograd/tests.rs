//! Errors beside those of the direct kernel, and what large numbers do.

use super::{is_faster, run};
use crate::epilogue::Epilogue;
use crate::gathered::{Product, Weight};
use crate::image::Pixel;
use keyway_cpu_loops::images::{Axis, Volume};
use keyway_sdk::author::{Float, Lanes};
use keyway_sdk::half::f16;

/// A convolution of `[n, c, h, w]` by `k` kernels with padding.
#[derive(Clone, Copy, Debug)]
struct Case {
    sizes: [usize; 4],
    k: usize,
    padding: usize,
}

/// Numbers from -0.5 to 0.5 without order, the same each time.
fn random(count: usize, seed: u64) -> Vec<f32> {
    let bits = |i: usize| (i as u64 + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    (0..count).map(|i| bits(i) as f32 / (1 << 24) as f32 - 0.5).collect()
}

impl Case {
    fn outs(&self) -> [usize; 2] {
        [2, 3].map(|d| self.sizes[d] + 2 * self.padding - 2)
    }

    fn is_chosen(&self) -> bool {
        is_faster(&self.product::<f32>(&[], &[], &[], &mut []))
    }

    fn numbers(&self) -> [Vec<f32>; 3] {
        let [n, c, h, w] = self.sizes;
        [random(n * c * h * w, 1), random(self.k * c * 9, 77), random(self.k, 5)]
    }

    /// The product of an image and a kernel that lie in channels_last order.
    fn product<'a, T: Pixel>(&self, x: &'a [T], w: &'a [T], bias: &[T], out: &'a mut [T]) -> Product<'a, T> {
        let image = |data: *mut T, [n, c, h, w]: [usize; 4]| Volume {
            // SAFETY: the slices outlive the product; only the output's elements are written.
            data: unsafe { Lanes::new(data) },
            sizes: [n, c, 1, h, w],
            strides: [h * w * c, 1, h * w * c, w * c, c],
        };
        let [n, c, ..] = self.sizes;
        let [height, width] = self.outs();
        let input = image(x.as_ptr().cast_mut(), self.sizes);
        let kernel = image(w.as_ptr().cast_mut(), [self.k, c, 3, 3]);
        let taps: Vec<isize> = (0..3).map(|t| t - self.padding.cast_signed()).collect();
        let axes = [1, 2].map(|d| Axis::of(&input, d, [height, width][d - 1], 1, taps.clone()));
        let places = kernel.places([0..1, 0..3, 0..3]).unwrap();
        Product {
            input,
            groups: 1,
            channels: c,
            rows: self.k,
            axes,
            weight: Weight { data: kernel.data, group: 0, row: 9 * c, channel: 1, taps: places },
            out: image(out.as_mut_ptr(), [n, self.k, height, width]),
            bias: Some(bias.to_vec()),
            epilogue: Epilogue::NONE,
        }
    }
}

/// What one kernel computes, if it does.
fn computed(case: Case, x: &[f32], w: &[f32], bias: &[f32], winograd: bool) -> Option<Vec<f32>> {
    let [height, width] = case.outs();
    let mut out = vec![f32::NAN; case.sizes[0] * case.k * height * width];
    let product = case.product(x, w, bias, &mut out);
    // SAFETY: the slices have the elements of these sizes.
    let done = unsafe { if winograd { run(&product) } else { product.in_blocks().map(|()| true) } }.unwrap();
    done.then_some(out)
}

/// The sums in f64.
fn exact(case: Case, x: &[f32], w: &[f32], bias: &[f32]) -> Vec<f64> {
    let ([n, c, h, width], [oh, ow]) = (case.sizes, case.outs());
    let mut all = Vec::new();
    for (image, y, x0, k) in (0..n * oh * ow * case.k)
        .map(|i| (i / case.k / ow / oh, i / case.k / ow % oh, i / case.k % ow, i % case.k))
    {
        let mut total = f64::from(bias[k]);
        for (ky, kx) in (0..9).map(|t| (t / 3, t % 3)) {
            let (y, x0) = ((y + ky).wrapping_sub(case.padding), (x0 + kx).wrapping_sub(case.padding));
            if y < h && x0 < width {
                let pixel = &x[((image * h + y) * width + x0) * c..][..c];
                let kernel = &w[(k * 9 + ky * 3 + kx) * c..][..c];
                total += pixel.iter().zip(kernel).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
            }
        }
        all.push(total);
    }
    all
}

/// The largest error beside the largest result.
fn error(got: &[f32], exact: &[f64]) -> f64 {
    let largest = exact.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    let errors = got.iter().zip(exact).map(|(got, exact)| (f64::from(*got) - exact).abs());
    errors.fold(0.0, |a: f64, b| if b.is_nan() { b } else { a.max(b) }) / largest
}

const CASES: [Case; 12] = [
    Case { sizes: [1, 64, 14, 14], k: 64, padding: 1 },
    Case { sizes: [2, 33, 9, 12], k: 35, padding: 1 },
    Case { sizes: [1, 32, 7, 7], k: 70, padding: 0 },
    Case { sizes: [3, 40, 5, 6], k: 33, padding: 2 },
    Case { sizes: [1, 128, 1, 1], k: 32, padding: 1 },
    Case { sizes: [2, 65, 3, 3], k: 32, padding: 0 },
    Case { sizes: [2, 32, 1, 8], k: 50, padding: 2 },
    Case { sizes: [1, 100, 2, 3], k: 160, padding: 1 },
    Case { sizes: [1, 32, 32, 31], k: 32, padding: 1 },
    Case { sizes: [1, 300, 4, 4], k: 33, padding: 1 },
    Case { sizes: [2, 32, 4, 5], k: 290, padding: 1 },
    Case { sizes: [3, 64, 6, 20], k: 64, padding: 1 },
];

/// Where it is chosen the error is at most the direct kernel's. Other images may be hardly more than a border, with few
/// products to sum directly.
fn check(case: Case, x: &[f32], w: &[f32], bias: &[f32]) {
    let exact = exact(case, x, w, bias);
    let [direct, winograd] =
        [false, true].map(|winograd| error(&computed(case, x, w, bias, winograd).unwrap(), &exact));
    let most = if case.is_chosen() { direct } else { direct.max(1e-6) };
    assert!(winograd <= most, "{case:?}: direct {direct:e}, Winograd {winograd:e}");
}

#[test]
fn errors_are_no_larger_than_those_of_direct_sums() {
    for case in CASES {
        let [signed, w, bias] = case.numbers();
        let positive: Vec<f32> = signed.iter().map(|x| x + 0.6).collect();
        let weights = w.iter().map(|x| x + 0.6).collect();
        for (x, w) in [(&signed, &w), (&positive, &w), (&positive, &weights)] {
            check(case, x, w, &bias);
        }
    }
}

#[test]
fn results_in_f16_are_rounded_once() {
    let case = CASES[1];
    let [x, w, bias] = case.numbers().map(|all| all.into_iter().map(f16::from_f32).collect::<Vec<f16>>());
    let wide = |all: &[f16]| all.iter().map(|v| v.to_acc()).collect::<Vec<f32>>();
    let exact = exact(case, &wide(&x), &wide(&w), &wide(&bias));
    let mut out = vec![f16::NAN; exact.len()];
    // SAFETY: the slices have the elements of these sizes.
    assert!(unsafe { run(&case.product(&x, &w, &bias, &mut out)) }.unwrap());
    let error = error(&wide(&out), &exact);
    // Half of the last place of its eleven bits, and what f32 errs.
    assert!(error < 1.01 / 2048.0, "{error:e}");
}

#[test]
fn small_and_large_scales_keep_their_errors() {
    let case = CASES[0];
    let [x, w, _] = case.numbers();
    for (pixels, kernels) in [(1e12, 1e12), (1e-19, 1e-18), (1e13, 1e-40), (1e-42, 1e13), (1e-30, 1e13)] {
        let scaled = |numbers: &[f32], by: f32| numbers.iter().map(|v| v * by).collect::<Vec<f32>>();
        check(case, &scaled(&x, pixels), &scaled(&w, kernels), &vec![0.0; case.k]);
    }
}

#[test]
fn numbers_that_would_reach_other_results_are_left_to_direct_sums() {
    let case = CASES[11];
    assert!(case.is_chosen());
    let [x, w, bias] = case.numbers();
    let bits = |all: &[f32]| all.iter().map(|v| v.to_bits()).collect::<Vec<u32>>();
    for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -1e20, 1e16] {
        // The first and last number, and others in corners of tiles and channels.
        let last = x.len() - 1;
        for (at, of_weight) in
            [(0, false), (last, false), (3333, false), (last - 63, false), (0, true), (36863, true)]
        {
            let [mut x, mut w] = [x.clone(), w.clone()];
            if of_weight {
                w[at] = number
            } else {
                x[at] = number
            }
            assert!(computed(case, &x, &w, &bias, true).is_none(), "{number} at {at}");
            let [height, width] = case.outs();
            let mut out = vec![0.0; case.sizes[0] * case.k * height * width];
            // SAFETY: the slices have the elements of these sizes.
            unsafe { case.product(&x, &w, &bias, &mut out).run() }.unwrap();
            let direct = computed(case, &x, &w, &bias, false).unwrap();
            assert_eq!(bits(&out), bits(&direct), "{number} at {at}");
        }
    }
}

#[test]
fn kernels_are_read_in_any_order_of_memory() {
    let case = CASES[1];
    let [x, w, bias] = case.numbers();
    let expected = computed(case, &x, &w, &bias, true).unwrap();
    let (k, c) = (case.k, case.sizes[1]);
    // Steps of rows, channels and taps.
    for (row, channel, tap) in [(9 * c, 9, 1), (9, 9 * k, 1), (1, k, k * c), (1, 9 * k, k)] {
        let mut moved = vec![0.0; w.len()];
        for (i, number) in w.iter().enumerate() {
            moved[i / c / 9 * row + i % c * channel + i / c % 9 * tap] = *number;
        }
        let mut out = vec![0.0; expected.len()];
        let mut product = case.product(&x, &moved, &bias, &mut out);
        (product.weight.row, product.weight.channel) = (row, channel);
        product.weight.taps = (0..9).map(|t| t * tap).collect();
        // SAFETY: the slices have the elements of these sizes, in this order.
        assert!(unsafe { run(&product) }.unwrap());
        assert_eq!(out, expected, "steps {row}, {channel}, {tap}");
    }
}
