use super::*;
use crate::summed;
use keyway_cpu_loops::images::Moves;
use keyway_sdk::half::f16;

/// `[samples, channels, height, width]` of the input, channels of the gradient, zero padding.
#[derive(Clone, Copy, Debug)]
struct Case {
    sizes: [usize; 4],
    rows: usize,
    padding: usize,
}

/// Whether the input, the gradient and the kernel are in channels_last order.
type Order = [bool; 3];

fn steps([n, c, h, w]: [usize; 4], is_last: bool) -> [usize; 5] {
    let _ = n;
    if is_last { [c * h * w, 1, c * h * w, w * c, c] } else { [c * h * w, h * w, h * w, w, 1] }
}

fn volume<T>(data: &mut [T], sizes: [usize; 4], is_last: bool) -> Volume<'_, T> {
    let [n, c, h, w] = sizes;
    Volume {
        // SAFETY: the slices have the elements that these sizes describe.
        data: unsafe { Lanes::new(data.as_mut_ptr()) },
        sizes: [n, c, 1, h, w],
        strides: steps(sizes, is_last),
    }
}

fn index(sizes: [usize; 4], is_last: bool, at: [usize; 4]) -> usize {
    let [a, b, _, c, d] = steps(sizes, is_last);
    at[0] * a + at[1] * b + at[2] * c + at[3] * d
}

impl Case {
    fn grad_sizes(&self) -> [usize; 4] {
        let [n, _, h, w] = self.sizes;
        let places = |size: usize| size + 2 * self.padding - 2;
        [n, self.rows, places(h), places(w)]
    }

    fn kernel_sizes(&self) -> [usize; 4] {
        [self.rows, self.sizes[1], 3, 3]
    }

    /// Input and gradient.
    fn numbers<T: Pixel>(&self) -> [Vec<T>; 2] {
        let mut state = 7u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            T::from_acc((state >> 40) as f32 / (1u32 << 24) as f32 - 0.5)
        };
        let count = |sizes: [usize; 4]| sizes.iter().product::<usize>();
        [self.sizes, self.grad_sizes()].map(|sizes| (0..count(sizes)).map(|_| next()).collect())
    }

    /// The gradient by tiles of this side, if they support it, or by direct sums.
    fn computed<T: Pixel>(&self, [x, g]: [&[T]; 2], order: Order, side: Option<usize>) -> Option<Vec<f32>> {
        let (mut x, mut g) = (x.to_vec(), g.to_vec());
        let mut out = vec![T::from_acc(f32::NAN); self.kernel_sizes().iter().product()];
        self.compute([&mut x, &mut g, &mut out], order, side)
            .then(|| out.iter().map(|x| x.to_acc()).collect())
    }

    fn compute<T: Pixel>(&self, [x, g, out]: [&mut [T]; 3], order: Order, side: Option<usize>) -> bool {
        let input = volume(x, self.sizes, order[0]);
        let grad = volume(g, self.grad_sizes(), order[1]);
        let result = volume(out, self.kernel_sizes(), order[2]);
        let moves =
            Moves { stride: [1; 3], padding: [0, self.padding, self.padding], dilation: [1; 3], groups: 1 };
        let [_, _, places @ ..] = grad.sizes;
        let [_, height, width] = moves.axes(&input, places, [1, 3, 3]).unwrap();
        let axes = [height, width];
        let of = WeightGrad { grad: &grad, input: &input, out: &result, axes: &axes };
        // SAFETY: the slices have the elements of these sizes.
        let done = unsafe {
            match side {
                Some(2) => of.by::<F2x2, _, _>(),
                Some(_) => of.by::<F4x4, _, _>(),
                None => summed::in_blocks(&grad, &input, &result, (1, &axes)).map(|()| true),
            }
        };
        done.unwrap()
    }

    /// Computes the sums in f64.
    fn exact<T: Pixel>(&self, [x, g]: [&[T]; 2], order: Order) -> Vec<f64> {
        let ([n, c, h, w], grad, kernel) = (self.sizes, self.grad_sizes(), self.kernel_sizes());
        let mut sums = vec![0.0; kernel.iter().product()];
        for (s, y, x0, k) in (0..n * grad[2] * grad[3] * self.rows).map(|i| {
            (
                i / self.rows / grad[3] / grad[2],
                i / self.rows / grad[3] % grad[2],
                i / self.rows % grad[3],
                i % self.rows,
            )
        }) {
            let of = f64::from(g[index(grad, order[1], [s, k, y, x0])].to_acc());
            for (ky, kx) in (0..9).map(|t| (t / 3, t % 3)) {
                let (y, x0) = ((y + ky).wrapping_sub(self.padding), (x0 + kx).wrapping_sub(self.padding));
                if y < h && x0 < w {
                    for channel in 0..c {
                        let pixel = x[index(self.sizes, order[0], [s, channel, y, x0])];
                        sums[index(kernel, order[2], [k, channel, ky, kx])] += of * f64::from(pixel.to_acc());
                    }
                }
            }
        }
        sums
    }
}

/// The largest error divided by the largest element.
fn error(got: &[f32], exact: &[f64]) -> f64 {
    let largest = exact.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    let errors = got.iter().zip(exact).map(|(got, exact)| (f64::from(*got) - exact).abs());
    errors.fold(0.0, |a: f64, b| if b.is_nan() { b } else { a.max(b) }) / largest
}

const CASES: [Case; 8] = [
    Case { sizes: [1, 64, 14, 14], rows: 64, padding: 1 },
    Case { sizes: [2, 33, 9, 12], rows: 35, padding: 1 },
    Case { sizes: [1, 24, 7, 7], rows: 70, padding: 0 },
    Case { sizes: [3, 40, 5, 6], rows: 33, padding: 2 },
    Case { sizes: [5, 32, 4, 4], rows: 40, padding: 1 },
    Case { sizes: [1, 100, 6, 9], rows: 160, padding: 1 },
    Case { sizes: [2, 65, 40, 31], rows: 32, padding: 1 },
    Case { sizes: [9, 130, 5, 5], rows: 290, padding: 1 },
];

const ORDERS: [Order; 4] =
    [[true, true, true], [false, false, false], [true, false, true], [false, true, false]];

#[test]
fn elements_are_those_of_sums_in_f64() {
    for (i, case) in CASES.into_iter().enumerate() {
        let [x, g] = case.numbers::<f32>();
        let order = ORDERS[i % 4];
        let exact = case.exact([&x, &g], order);
        let direct = error(&case.computed([&x, &g], order, None).unwrap(), &exact);
        for (side, most) in [(2, direct.max(6e-7)), (4, 3e-6)] {
            let got = error(&case.computed([&x, &g], order, Some(side)).unwrap(), &exact);
            assert!(got <= most, "{case:?} {order:?}: direct {direct:e}, side {side} {got:e}");
        }
    }
}

#[test]
fn each_order_gives_the_same_bits() {
    for case in &CASES[1..4] {
        let [x, g] = case.numbers::<f16>();
        for side in [2, 4] {
            let all = ORDERS.map(|order| {
                // The same values with other strides.
                let moved = |from: &[f16], sizes: [usize; 4], is_last: bool| {
                    let mut to = from.to_vec();
                    let [n, c, h, w] = sizes;
                    for (i, number) in from.iter().enumerate().take(n * c * h * w) {
                        let at = [i / w / h / c, i / w / h % c, i / w % h, i % w];
                        to[index(sizes, is_last, at)] = *number;
                    }
                    to
                };
                let (x, g) = (moved(&x, case.sizes, order[0]), moved(&g, case.grad_sizes(), order[1]));
                let made = case.computed([&x, &g], order, Some(side)).unwrap();
                let kernel = case.kernel_sizes();
                let [k, c, _, _] = kernel;
                (0..k * c * 9)
                    .map(|i| {
                        made[index(kernel, order[2], [i / 9 / c, i / 9 % c, i / 3 % 3, i % 3])].to_bits()
                    })
                    .collect::<Vec<_>>()
            });
            assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{case:?} by {side}");
        }
    }
}

#[test]
fn large_numbers_and_those_that_are_none_are_left_to_direct_sums() {
    let case = CASES[0];
    let [x, g] = case.numbers::<f32>();
    for odd in [f32::NAN, f32::INFINITY, 1e30] {
        let with = |numbers: &[f32]| {
            let mut numbers = numbers.to_vec();
            let at = numbers.len() / 3;
            numbers[at] = odd;
            numbers
        };
        for side in [2, 4] {
            assert!(case.computed([&with(&x), &g], ORDERS[0], Some(side)).is_none(), "{odd} by {side}");
            assert!(case.computed([&x, &with(&g)], ORDERS[0], Some(side)).is_none(), "{odd} by {side}");
        }
    }
    // For values just below the limit no sum overflows.
    for (side, scale) in [(2, 1e14f32), (4, 1e9)] {
        let scaled = |numbers: &[f32]| numbers.iter().map(|x| x * scale).collect::<Vec<f32>>();
        let (x, g) = (scaled(&x), scaled(&g));
        let made = case.computed([&x, &g], ORDERS[0], Some(side)).expect("no large numbers");
        assert!(made.iter().all(|x| x.is_finite()), "by {side}");
    }
}

#[test]
fn sizes_decide_by_which_tiles() {
    let chosen = |sizes: [usize; 4], rows: usize, may_be_rounded: bool| {
        let case = Case { sizes, rows, padding: 1 };
        let mut none: [f32; 0] = [];
        // SAFETY: no element is read.
        let data = unsafe { Lanes::new(none.as_mut_ptr()) };
        let of = |sizes: [usize; 4]| {
            let [n, c, h, w] = sizes;
            Volume { data, sizes: [n, c, 1, h, w], strides: steps(sizes, true) }
        };
        let (input, grad, out) = (of(sizes), of(case.grad_sizes()), of(case.kernel_sizes()));
        let moves = Moves { stride: [1; 3], padding: [0, 1, 1], dilation: [1; 3], groups: 1 };
        let [_, _, places @ ..] = grad.sizes;
        let [_, height, width] = moves.axes(&input, places, [1, 3, 3]).unwrap();
        WeightGrad { grad: &grad, input: &input, out: &out, axes: &[height, width] }.fastest(may_be_rounded)
    };
    assert_eq!(chosen([8, 64, 56, 56], 64, false), Some(2));
    assert_eq!(chosen([8, 64, 56, 56], 64, true), Some(4));
    assert_eq!(chosen([8, 512, 7, 7], 512, true), Some(2), "the sums of larger tiles");
    assert_eq!(chosen([2, 512, 7, 7], 512, false), None, "more sums than products");
    assert_eq!(chosen([8, 8192, 56, 56], 8192, true), None, "sums beyond memory");
    assert_eq!(chosen([8, 16, 56, 56], 64, true), None, "few channels");
    assert_eq!(chosen([8, 64, 2, 56], 64, true), None, "few rows");
}
