//! Compares convolutions by the matrix unit with sums in f64: by an emulated unit on every machine, and by the processor's
//! unit if it has one; both must be bit-identical.

use super::epilogue::Epilogue;
use super::product::{Product, Weight};
use super::{by_tiles, sum_by_tiles};
use keyway_cpu_loops::images::{Moves, Volume};
use keyway_cpu_loops::tiles::{Emulated, EmulatedDots, Native, Unit};
use keyway_sdk::author::{Error, Float, Lanes};
use keyway_sdk::half::bf16;

/// Sizes of an image and its kernel, and parameters of the convolution.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Samples, channels, height, width.
    pub image: [usize; 4],
    pub rows: usize,
    pub kernel: [usize; 2],
    pub stride: [usize; 2],
    pub padding: [usize; 2],
    pub dilation: [usize; 2],
    pub groups: usize,
    pub bias: bool,
    /// Whether the kernel is contiguous, instead of channels_last.
    pub contiguous: bool,
}

pub const PLAIN: Case = Case {
    image: [1, 32, 8, 8],
    rows: 32,
    kernel: [3, 3],
    stride: [1, 1],
    padding: [1, 1],
    dilation: [1, 1],
    groups: 1,
    bias: false,
    contiguous: false,
};

/// Whole and partial blocks of positions, rows and channels, each method of reading an image, several samples at a time.
pub fn cases() -> Vec<Case> {
    vec![
        PLAIN,
        Case { image: [2, 40, 9, 11], rows: 37, bias: true, contiguous: true, ..PLAIN },
        Case { image: [5, 64, 5, 6], rows: 70, bias: true, ..PLAIN },
        // The image in place, whole and with fewer positions than a block has.
        Case { image: [3, 32, 7, 9], rows: 20, kernel: [1, 1], padding: [0, 0], bias: true, ..PLAIN },
        Case { image: [2, 32, 9, 12], rows: 16, padding: [0, 0], ..PLAIN },
        Case { image: [2, 64, 3, 4], rows: 16, padding: [0, 0], bias: true, ..PLAIN },
        Case { image: [1, 32, 70, 9], rows: 8, kernel: [1, 1], padding: [0, 0], ..PLAIN },
        // Strides with and without taps of all stride phases, dilation, positions beyond the image.
        Case { image: [2, 33, 11, 10], stride: [2, 2], bias: true, ..PLAIN },
        Case { image: [2, 32, 11, 10], kernel: [1, 1], padding: [0, 0], stride: [2, 3], ..PLAIN },
        Case { image: [1, 20, 13, 12], stride: [3, 2], dilation: [2, 3], padding: [4, 5], ..PLAIN },
        Case { image: [1, 32, 6, 6], kernel: [2, 4], padding: [3, 7], dilation: [1, 2], ..PLAIN },
        // Few channels, whose taps are merged with them.
        Case { image: [2, 3, 17, 19], kernel: [7, 7], padding: [3, 3], stride: [2, 2], bias: true, ..PLAIN },
        Case { image: [1, 16, 9, 9], contiguous: true, ..PLAIN },
        Case { image: [1, 1, 12, 40], kernel: [1, 5], padding: [0, 9], dilation: [1, 3], ..PLAIN },
        Case { image: [1, 2, 5, 90], kernel: [1, 65], padding: [0, 2], ..PLAIN },
        // Groups.
        Case { image: [2, 32, 8, 7], rows: 48, groups: 4, bias: true, ..PLAIN },
        Case { groups: 2, ..PLAIN },
        Case { groups: 4, ..PLAIN },
        // Groups of few channels, several of which are merged.
        Case { image: [2, 32, 8, 7], rows: 32, groups: 8, bias: true, ..PLAIN },
        Case { image: [1, 36, 6, 5], rows: 24, groups: 12, stride: [2, 1], ..PLAIN },
        Case { image: [1, 15, 6, 5], rows: 10, groups: 5, kernel: [1, 1], padding: [0, 0], ..PLAIN },
        Case { image: [1, 66, 6, 7], rows: 66, groups: 2, stride: [1, 2], ..PLAIN },
        // More than one band of rows, and more than one work item.
        Case { image: [1, 64, 60, 50], rows: 8, ..PLAIN },
    ]
}

fn elements(count: usize, seed: usize) -> Vec<bf16> {
    let number = |i: usize| ((i * 37 + seed + i / 5 * 11) % 251) as f32 / 32.0 - 3.9;
    (0..count).map(|i| bf16::from_f32(number(i))).collect()
}

/// A tensor of four sizes, contiguous or in channels_last order.
fn volume(data: &mut [bf16], [n, c, h, w]: [usize; 4], contiguous: bool) -> Volume<'_, bf16> {
    assert_eq!(data.len(), n * c * h * w);
    let strides = match contiguous {
        true => [c * h * w, h * w, h * w, w, 1],
        false => [h * w * c, 1, h * w * c, w * c, c],
    };
    // SAFETY: the slice has the elements, uniquely owned during the borrow.
    Volume { data: unsafe { Lanes::new(data.as_mut_ptr()) }, sizes: [n, c, 1, h, w], strides }
}

/// A tensor's data, sizes and memory format, with access by index.
struct Tensor {
    data: Vec<bf16>,
    sizes: [usize; 4],
    contiguous: bool,
}

impl Tensor {
    fn new(sizes: [usize; 4], contiguous: bool, seed: usize) -> Tensor {
        Tensor { data: elements(sizes.iter().product(), seed), sizes, contiguous }
    }

    fn volume(&mut self) -> Volume<'_, bf16> {
        volume(&mut self.data, self.sizes, self.contiguous)
    }

    fn at(&self, [i, c, y, x]: [usize; 4]) -> f64 {
        let [_, channels, h, w] = self.sizes;
        let at = match self.contiguous {
            true => ((i * channels + c) * h + y) * w + x,
            false => ((i * h + y) * w + x) * channels + c,
        };
        self.data[at].to_f64()
    }
}

impl Case {
    pub fn moves(&self) -> Moves {
        let three = |[y, x]: [usize; 2], neutral| [neutral, y, x];
        Moves {
            stride: three(self.stride, 1),
            padding: three(self.padding, 0),
            dilation: three(self.dilation, 1),
            groups: self.groups,
        }
    }

    /// The number of positions along an axis.
    fn places(&self, d: usize) -> usize {
        let reach = (self.kernel[d] - 1) * self.dilation[d] + 1;
        (self.image[d + 2] + 2 * self.padding[d] - reach) / self.stride[d] + 1
    }

    pub fn results(&self) -> [usize; 4] {
        [self.image[0], self.rows, self.places(0), self.places(1)]
    }

    pub fn kernels(&self) -> [usize; 4] {
        [self.rows, self.image[1] / self.groups, self.kernel[0], self.kernel[1]]
    }

    /// The pixel that a tap reads at a position; `None` outside the image.
    pub fn pixel(&self, place: [usize; 2], tap: [usize; 2]) -> Option<[usize; 2]> {
        let [y, x] = [0, 1].map(|d| {
            let at = place[d] * self.stride[d] + tap[d] * self.dilation[d];
            at.checked_sub(self.padding[d]).filter(|at| *at < self.image[d + 2])
        });
        Some([y?, x?])
    }
}

pub fn each(sizes: [usize; 4]) -> impl Iterator<Item = [usize; 4]> {
    let [a, b, c, d] = sizes;
    (0..a * b * c * d).map(move |i| [i / d / c / b, i / d / c % b, i / d % c, i % d])
}

/// A sum of products, and the sum of their magnitudes.
pub fn sum(terms: impl Iterator<Item = f64>) -> (f64, f64) {
    terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()))
}

/// The tolerance: the rounding to bf16, and the roundings of the f32 sum.
fn check(case: Case, at: [usize; 4], got: f64, (expected, size): (f64, f64)) {
    let bound = expected.abs() / 256.0 + size * 1e-6;
    assert!((got - expected).abs() <= bound, "{case:?} at {at:?}: {got}, not {expected}");
}

impl Case {
    /// The product of volumes of these sizes.
    pub fn product<'a, T: Float>(
        &self,
        [input, kernels, out]: [Volume<'a, T>; 3],
        bias: Option<&[T]>,
    ) -> Product<'a, T> {
        let (rows, moves) = (self.rows / self.groups, self.moves());
        let ([_, _, places @ ..], [_, _, kernel @ ..]) = (out.sizes, kernels.sizes);
        let [_, height, width] = moves.axes(&input, places, kernel).unwrap();
        Product {
            input,
            groups: self.groups,
            channels: self.image[1] / self.groups,
            rows,
            axes: [height, width],
            weight: Weight {
                data: kernels.data,
                group: rows * kernels.strides[0],
                row: kernels.strides[0],
                channel: kernels.strides[1],
                taps: kernels.places(kernel.map(|size| 0..size)).unwrap(),
            },
            out,
            bias: bias.map(<[_]>::to_vec),
            epilogue: Epilogue::NONE,
        }
    }
}

/// Runs a convolution.
fn run<U: Unit>(
    unit: U,
    case: Case,
    [image, weight, out]: [&mut Tensor; 3],
    bias: Option<&[bf16]>,
) -> Result<(), Error> {
    run_with(unit, case, [image, weight, out], bias, Epilogue::NONE)
}

fn run_with<'a, U: Unit>(
    unit: U,
    case: Case,
    [image, weight, out]: [&'a mut Tensor; 3],
    bias: Option<&[bf16]>,
    epilogue: Epilogue<'a, bf16>,
) -> Result<(), Error> {
    let product = Product { epilogue, ..case.product([image.volume(), weight.volume(), out.volume()], bias) };
    // SAFETY: the tensors have the elements of their sizes; `out` is accessed here alone.
    unsafe { by_tiles::run(unit, &product) }
}

/// Convolves and compares. Returns the bits of the result.
fn convolve<U: Unit>(unit: U, case: Case) -> Vec<u16> {
    let mut image = Tensor::new(case.image, false, 0);
    let mut weight = Tensor::new(case.kernels(), case.contiguous, 5);
    let mut out = Tensor::new(case.results(), false, 9);
    let bias = case.bias.then(|| elements(case.rows, 3));
    let (rows, channels) = (case.rows / case.groups, case.image[1] / case.groups);
    run(unit, case, [&mut image, &mut weight, &mut out], bias.as_deref()).expect("memory");
    for at @ [i, k, y, x] in each(case.results()) {
        let terms = each([1, channels, case.kernel[0], case.kernel[1]]).filter_map(|[_, c, ty, tx]| {
            let [py, px] = case.pixel([y, x], [ty, tx])?;
            Some(image.at([i, k / rows * channels + c, py, px]) * weight.at([k, c, ty, tx]))
        });
        let added = bias.iter().map(|bias| bias[k].to_f64());
        check(case, at, out.at(at), sum(terms.chain(added)));
    }
    let bits = out.data.iter().map(|v| v.to_bits()).collect();
    // The convolution plus a tensor, followed by ReLU.
    let mut add = Tensor::new(case.results(), false, 21);
    let numbers = add.data.clone();
    let epilogue = Epilogue::relu_of_sum_with(add.volume().data);
    run_with(unit, case, [&mut image, &mut weight, &mut out], bias.as_deref(), epilogue).expect("memory");
    let added = Tensor { data: numbers, sizes: case.results(), contiguous: false };
    for at @ [i, k, y, x] in each(case.results()) {
        let terms = each([1, channels, case.kernel[0], case.kernel[1]]).filter_map(|[_, c, ty, tx]| {
            let [py, px] = case.pixel([y, x], [ty, tx])?;
            Some(image.at([i, k / rows * channels + c, py, px]) * weight.at([k, c, ty, tx]))
        });
        let more = bias.iter().map(|bias| bias[k].to_f64()).chain([added.at(at)]);
        let (expected, size) = sum(terms.chain(more));
        check(case, at, out.at(at), (expected.max(0.0), size));
    }
    bits
}

/// Computes the gradient of the weight and compares. Returns the bits of the result.
fn sum_over_places<U: Unit>(unit: U, case: Case) -> Vec<u16> {
    let mut image = Tensor::new(case.image, false, 0);
    let mut grad = Tensor::new(case.results(), false, 5);
    let mut out = Tensor::new(case.kernels(), case.contiguous, 9);
    let (rows, channels) = (case.rows / case.groups, case.image[1] / case.groups);
    // SAFETY: the tensors have the elements of their sizes; `out` is accessed here alone.
    let done =
        unsafe { sum_by_tiles::run(unit, &grad.volume(), &image.volume(), &out.volume(), &case.moves()) };
    assert!(done.expect("memory"), "all pixels are finite");
    for at @ [k, c, ty, tx] in each(case.kernels()) {
        let [n, _, height, width] = case.results();
        let terms = each([n, 1, height, width]).filter_map(|[i, _, y, x]| {
            let [py, px] = case.pixel([y, x], [ty, tx])?;
            Some(image.at([i, k / rows * channels + c, py, px]) * grad.at([i, k, y, x]))
        });
        check(case, at, out.at(at), sum(terms));
    }
    out.data.into_iter().map(bf16::to_bits).collect()
}

#[test]
fn convolutions_are_right_at_all_edges_by_an_emulated_unit() {
    cases().into_iter().for_each(|case| drop(convolve(Emulated, case)));
}

#[test]
fn gradients_of_weights_are_right_at_all_edges_by_an_emulated_unit() {
    cases().into_iter().for_each(|case| drop(sum_over_places(Emulated, case)));
}

#[test]
fn the_processors_unit_and_the_emulated_one_agree_bit_by_bit() {
    let Some(unit) = Native::tiles() else {
        eprintln!("skipped: this machine has no AMX of bf16, or its system keeps it from this process");
        return;
    };
    for case in cases() {
        assert_eq!(convolve(unit, case), convolve(Emulated, case), "{case:?}");
        assert_eq!(sum_over_places(unit, case), sum_over_places(Emulated, case), "{case:?}");
    }
}

#[test]
fn the_processors_dot_products_and_emulated_ones_agree_bit_by_bit() {
    let Some(unit) = Native::dots() else {
        eprintln!("skipped: this machine has no AVX-512 BF16");
        return;
    };
    for case in cases() {
        assert_eq!(convolve(unit, case), convolve(EmulatedDots, case), "{case:?}");
        assert_eq!(sum_over_places(unit, case), sum_over_places(EmulatedDots, case), "{case:?}");
    }
}

#[test]
fn what_is_no_number_stays_in_the_places_that_read_it() {
    for case in [PLAIN, Case { image: [1, 3, 9, 9], kernel: [3, 3], ..PLAIN }] {
        let mut image = Tensor::new(case.image, false, 0);
        let [_, channels, _, width] = case.image;
        image.data[(4 * width + 4) * channels] = bf16::NAN;
        let mut weight = Tensor::new(case.kernels(), false, 5);
        let mut out = Tensor::new(case.results(), false, 9);
        run(Emulated, case, [&mut image, &mut weight, &mut out], None).expect("memory");
        let pixels = out.data.chunks_exact(case.rows);
        let (all, some) = pixels.fold((0, 0), |(all, some), pixel| {
            let nan = pixel.iter().filter(|v| v.is_nan()).count();
            (all + usize::from(nan == case.rows), some + usize::from(nan > 0))
        });
        assert_eq!((all, some), (9, 9), "{case:?}");
    }
}

#[test]
fn taps_far_beyond_the_image_are_left_to_others_before_memory_is_asked_for() {
    let far = 1 << 40;
    for [y, x] in [[far, 1], [1, far]] {
        let case = Case { padding: [y, x], dilation: [y, x], ..PLAIN };
        let mut image = Tensor::new(case.image, false, 0);
        let mut weight = Tensor::new(case.kernels(), false, 5);
        let mut out = Tensor::new(case.results(), false, 9);
        let refused = run(Emulated, case, [&mut image, &mut weight, &mut out], None);
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
        // SAFETY: the tensors have the elements of their sizes; the weight is accessed here alone.
        let refused = unsafe {
            sum_by_tiles::run(Emulated, &out.volume(), &image.volume(), &weight.volume(), &case.moves())
        };
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
    }
}

#[test]
fn a_pixel_that_is_not_finite_is_left_to_the_places_that_read_it() {
    for (number, is_finite) in [(f32::INFINITY, false), (f32::NAN, false), (f32::MAX, true)] {
        let mut image = Tensor::new(PLAIN.image, false, 0);
        let mut grad = Tensor::new(PLAIN.results(), false, 5);
        let mut out = Tensor::new(PLAIN.kernels(), false, 9);
        let last = image.data.len() - 1;
        image.data[last] = bf16::from_bits((number.to_bits() >> 16) as u16);
        // SAFETY: the tensors have the elements of their sizes; `out` is accessed here alone.
        let done = unsafe {
            sum_by_tiles::run(Emulated, &grad.volume(), &image.volume(), &out.volume(), &PLAIN.moves())
        };
        assert_eq!(done.expect("memory"), is_finite, "{number}");
    }
}
