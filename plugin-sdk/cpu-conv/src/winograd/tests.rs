//! Tests of errors relative to the direct kernel, of the choice of the algorithm, and of large values.

use super::choice::{Algorithm, fastest, fits};
use crate::epilogue::Epilogue;
use crate::image::Pixel;
use crate::product::{Product, Weight};
use Algorithm::{F2x2, F4x4};
use keyway_cpu_loops::images::{Axis, Volume};
use keyway_sdk::author::{Float, Lanes};
use keyway_sdk::half::f16;

/// A convolution of `[n, c, h, w]` by `k` kernels with zero padding.
#[derive(Clone, Copy, Debug)]
struct Case {
    sizes: [usize; 4],
    k: usize,
    padding: usize,
}

/// Deterministic pseudo-random values in -0.5..0.5.
fn random(count: usize, seed: u64) -> Vec<f32> {
    let bits = |i: usize| (i as u64 + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    (0..count).map(|i| bits(i) as f32 / (1 << 24) as f32 - 0.5).collect()
}

impl Case {
    fn outs(&self) -> [usize; 2] {
        [2, 3].map(|d| self.sizes[d] + 2 * self.padding - 2)
    }

    /// The algorithm that is selected if the program allows factors to be rounded, or does not.
    fn chosen(&self, may_be_rounded: bool) -> Option<Algorithm> {
        let product = self.product::<f32>(&[], &[], &[], &mut []);
        fits(&product).then(|| fastest(&product, may_be_rounded))?
    }

    fn numbers(&self) -> [Vec<f32>; 3] {
        let [n, c, h, w] = self.sizes;
        [random(n * c * h * w, 1), random(self.k * c * 9, 77), random(self.k, 5)]
    }

    /// The product of an image and a kernel in channels_last order.
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

/// The results of an algorithm, if it supports them, or of the direct kernel.
fn computed(case: Case, x: &[f32], w: &[f32], bias: &[f32], by: Option<Algorithm>) -> Option<Vec<f32>> {
    let [height, width] = case.outs();
    let mut out = vec![f32::NAN; case.sizes[0] * case.k * height * width];
    let product = case.product(x, w, bias, &mut out);
    // SAFETY: the slices have the elements of these sizes.
    let done = unsafe {
        match by {
            Some(algorithm) => algorithm.run(&product),
            None => product.in_blocks().map(|()| true),
        }
    };
    done.unwrap().then_some(out)
}

/// Adds the products of each result sequentially to its bias.
fn added<S: Copy>(
    case: Case,
    [x, w, bias]: [&[f32]; 3],
    of: impl Fn(f32) -> S,
    add: impl Fn(S, f32, f32) -> S,
) -> Vec<S> {
    let ([n, c, h, width], [oh, ow]) = (case.sizes, case.outs());
    let mut all = Vec::new();
    for (image, y, x0, k) in (0..n * oh * ow * case.k)
        .map(|i| (i / case.k / ow / oh, i / case.k / ow % oh, i / case.k % ow, i % case.k))
    {
        let mut total = of(bias[k]);
        for (ky, kx) in (0..9).map(|t| (t / 3, t % 3)) {
            let (y, x0) = ((y + ky).wrapping_sub(case.padding), (x0 + kx).wrapping_sub(case.padding));
            if y < h && x0 < width {
                let pixel = &x[((image * h + y) * width + x0) * c..][..c];
                let kernel = &w[(k * 9 + ky * 3 + kx) * c..][..c];
                total = pixel.iter().zip(kernel).fold(total, |total, (a, b)| add(total, *a, *b));
            }
        }
        all.push(total);
    }
    all
}

/// Computes the sums in f64.
fn exact(case: Case, numbers: [&[f32]; 3]) -> Vec<f64> {
    added(case, numbers, f64::from, |total, a, b| total + f64::from(a) * f64::from(b))
}

/// The largest error divided by the largest result.
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

/// Where F(2x2) is selected its error is at most that of a sequential sum. Other images may be mostly padding, with few
/// products to sum. The error of F(4x4) grows as the root of the number of channels, and direct sums, in short chains, have
/// at most half the error of F(2x2).
fn check(case: Case, by: Algorithm, numbers: [&[f32]; 3]) {
    let exact = exact(case, numbers);
    let [x, w, bias] = numbers;
    let [direct, got] = [None, Some(by)].map(|by| error(&computed(case, x, w, bias, by).unwrap(), &exact));
    let chain = error(&added(case, numbers, |bias| bias, |total, a, b| a.mul_add(b, total)), &exact);
    let most = match by {
        F2x2 if case.chosen(false) == Some(F2x2) => chain,
        F2x2 => chain.max(1e-6),
        F4x4 => 3e-7 * (case.sizes[1] as f64).sqrt(),
    };
    assert!(got <= most, "{case:?}: one chain {chain:e}, {by:?} {got:e}");
    assert!(direct <= chain.max(5e-7), "{case:?}: one chain {chain:e}, direct {direct:e}");
}

#[test]
fn errors_are_within_their_bounds() {
    for case in CASES {
        let [signed, w, bias] = case.numbers();
        let positive: Vec<f32> = signed.iter().map(|x| x + 0.6).collect();
        let weights: Vec<f32> = w.iter().map(|x| x + 0.6).collect();
        for (x, w) in [(&signed, &w), (&positive, &w), (&positive, &weights)] {
            for by in [F2x2, F4x4] {
                check(case, by, [x, w, &bias]);
            }
        }
    }
}

#[test]
fn the_fastest_is_chosen_by_sizes() {
    let chosen = |sizes: [usize; 4], k: usize| {
        let case = Case { sizes, k, padding: 1 };
        [false, true].map(|may_be_rounded| case.chosen(may_be_rounded))
    };
    assert_eq!(chosen([8, 64, 56, 56], 64), [Some(F2x2), Some(F4x4)]);
    // The edges of larger tiles are wasted, here a quarter of them and there five ninths.
    assert_eq!(chosen([16, 128, 14, 14], 128), [Some(F2x2), Some(F4x4)]);
    assert_eq!(chosen([32, 128, 6, 6], 128), [Some(F2x2), Some(F2x2)]);
    // Too few pixels for the transforms of the weight, and too few channels for those of pixels and results.
    assert_eq!(chosen([4, 512, 7, 7], 512), [None, None]);
    assert_eq!(chosen([8, 16, 56, 56], 64), [None, None]);
    // The larger weight would take too much memory.
    assert_eq!(chosen([8, 1024, 14, 14], 512), [Some(F2x2), Some(F2x2)]);
}

#[test]
fn results_in_f16_are_rounded_once() {
    let case = CASES[1];
    let [x, w, bias] = case.numbers().map(|all| all.into_iter().map(f16::from_f32).collect::<Vec<f16>>());
    let wide = |all: &[f16]| all.iter().map(|v| v.to_acc()).collect::<Vec<f32>>();
    let exact = exact(case, [&wide(&x), &wide(&w), &wide(&bias)]);
    let mut out = vec![f16::NAN; exact.len()];
    // SAFETY: the slices have the elements of these sizes.
    assert!(unsafe { F2x2.run(&case.product(&x, &w, &bias, &mut out)) }.unwrap());
    let error = error(&wide(&out), &exact);
    // Half an ULP of eleven bits, plus the error of f32.
    assert!(error < 1.01 / 2048.0, "{error:e}");
}

#[test]
fn small_and_large_scales_keep_their_errors() {
    let case = CASES[0];
    let [x, w, _] = case.numbers();
    for (by, large, larger) in [(F2x2, 1e12, 1e13), (F4x4, 1e9, 1e9)] {
        for (pixels, kernels) in
            [(large, large), (1e-19, 1e-18), (larger, 1e-40), (1e-42, larger), (1e-30, larger)]
        {
            let scaled = |numbers: &[f32], by: f32| numbers.iter().map(|v| v * by).collect::<Vec<f32>>();
            check(case, by, [&scaled(&x, pixels), &scaled(&w, kernels), &vec![0.0; case.k]]);
        }
    }
}

#[test]
fn numbers_that_would_reach_other_results_are_left_to_direct_sums() {
    let case = CASES[11];
    assert_eq!(case.chosen(false), Some(F2x2));
    let [x, w, bias] = case.numbers();
    let bits = |all: &[f32]| all.iter().map(|v| v.to_bits()).collect::<Vec<u32>>();
    for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -1e20, 1e16, -1e11] {
        // The first and last element, and others in corners of tiles and channels.
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
            assert!(computed(case, &x, &w, &bias, Some(F4x4)).is_none(), "{number} at {at}");
            if number == -1e11 {
                continue;
            }
            assert!(computed(case, &x, &w, &bias, Some(F2x2)).is_none(), "{number} at {at}");
            let [height, width] = case.outs();
            let mut out = vec![0.0; case.sizes[0] * case.k * height * width];
            // SAFETY: the slices have the elements of these sizes.
            unsafe { case.product(&x, &w, &bias, &mut out).run() }.unwrap();
            let direct = computed(case, &x, &w, &bias, None).unwrap();
            assert_eq!(bits(&out), bits(&direct), "{number} at {at}");
        }
    }
}

/// Tests values just below the limit, of equal magnitude and with the signs that maximise their transforms.
#[test]
fn sums_of_numbers_below_the_large_ones_do_not_overflow() {
    let case = Case { sizes: [1, 512, 6, 6], k: 32, padding: 0 };
    // From the sums of squares of 6 x 6 x 512 pixels, and of the 3 x 3 x 32 x 32 elements of a chunk.
    let [pixel, element] = [36 * 512, 9 * 32 * 32].map(|count| (0.99e22 / f64::from(count)).sqrt() as f32);
    for signs in 0..16 {
        let sign = |y: usize, x: usize, by: [usize; 2]| {
            if (y * by[0] + x * by[1]).is_multiple_of(2) { 1.0 } else { -1.0 }
        };
        let [of_pixels, of_elements] = [[signs & 1, signs >> 1 & 1], [signs >> 2 & 1, signs >> 3]];
        let x: Vec<f32> = (0..36 * 512).map(|i| pixel * sign(i / 512 / 6, i / 512 % 6, of_pixels)).collect();
        let w: Vec<f32> =
            (0..32 * 9 * 512).map(|i| element * sign(i / 512 % 9 / 3, i / 512 % 3, of_elements)).collect();
        let made = computed(case, &x, &w, &[0.0; 32], Some(F4x4)).unwrap();
        assert!(made.iter().all(|result| result.is_finite()), "signs {signs}");
    }
}

/// Images may have more pixels than are read, with arbitrary values.
#[test]
fn pixels_that_no_result_is_of_are_not_read() {
    let case = Case { sizes: [2, 32, 9, 11], k: 33, padding: 0 };
    let [x, w, bias] = case.numbers();
    let [height, width] = case.outs();
    for by in [F2x2, F4x4] {
        let made = [0.0, f32::NAN].map(|unread| {
            let mut x = x.clone();
            for (i, pixel) in x.iter_mut().enumerate() {
                let (y, across) = (i / 32 / 11 % 9, i / 32 % 11);
                if y >= 8 || across >= 9 {
                    *pixel = unread;
                }
            }
            let mut out = vec![0.0; 2 * 33 * height * width];
            let mut product = case.product(&x, &w, &bias, &mut out);
            (product.axes[0].count, product.axes[1].count) = (height - 1, width - 2);
            // SAFETY: the slices have the elements of these sizes.
            assert!(unsafe { by.run(&product) }.unwrap(), "{by:?}");
            out
        });
        assert_eq!(made[0], made[1], "{by:?}");
    }
}

#[test]
fn kernels_are_read_in_any_order_of_memory() {
    let case = CASES[1];
    let [x, w, bias] = case.numbers();
    let expected = [F2x2, F4x4].map(|by| computed(case, &x, &w, &bias, Some(by)).unwrap());
    let (k, c) = (case.k, case.sizes[1]);
    // Strides of rows, channels and taps.
    for (row, channel, tap) in [(9 * c, 9, 1), (9, 9 * k, 1), (1, k, k * c), (1, 9 * k, k)] {
        let mut moved = vec![0.0; w.len()];
        for (i, number) in w.iter().enumerate() {
            moved[i / c / 9 * row + i % c * channel + i / c % 9 * tap] = *number;
        }
        for (by, expected) in [F2x2, F4x4].iter().zip(&expected) {
            let mut out = vec![0.0; expected.len()];
            let mut product = case.product(&x, &moved, &bias, &mut out);
            (product.weight.row, product.weight.channel) = (row, channel);
            product.weight.taps = (0..9).map(|t| t * tap).collect();
            // SAFETY: the slices have the elements of these sizes, in this order.
            assert!(unsafe { by.run(&product) }.unwrap());
            assert_eq!(&out, expected, "{by:?}, steps {row}, {channel}, {tap}");
        }
    }
}
