//! Images in row-major order have results bit-identical to channels_last, with each algorithm.

use crate::epilogue::Epilogue;
use crate::image::{Pixel, image};
use crate::product::Product;
use crate::tile_tests::{Case, PLAIN, cases, each};
use crate::winograd::Algorithm;
use crate::{by_tiles, results, sum_by_tiles, summed};
use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::tiles::Emulated;
use keyway_sdk::author::{Error, Lanes};
use keyway_sdk::half::{bf16, f16};

/// The memory layout of a test tensor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Order {
    ChannelsLast,
    RowMajor,
    /// Row-major, with gaps between rows and between planes.
    Apart,
    /// Every second column of a row-major tensor.
    Columns,
}
pub use Order::{Apart, ChannelsLast, Columns, RowMajor};

impl Order {
    fn strides(self, [_, c, h, w]: [usize; 4]) -> [usize; 4] {
        match self {
            ChannelsLast => [h * w * c, 1, w * c, c],
            RowMajor => [c * h * w, h * w, w, 1],
            Apart => [c * (h * (w + 3) + 5), h * (w + 3) + 5, w + 3, 1],
            Columns => [c * h * w * 2, h * w * 2, w * 2, 2],
        }
    }
}

/// A strided tensor with NaN in the gaps between its elements.
pub struct Tensor<T> {
    data: Vec<T>,
    pub sizes: [usize; 4],
    strides: [usize; 4],
}

impl<T: Pixel> Tensor<T> {
    pub fn new(sizes: [usize; 4], order: Order, seed: usize) -> Tensor<T> {
        let strides = order.strides(sizes);
        let mut new = Tensor { data: vec![T::from_acc(f32::NAN); sizes[0] * strides[0]], sizes, strides };
        for (i, index) in each(sizes).enumerate() {
            let at = new.place(index);
            new.data[at] = T::from_acc(((i * 37 + seed + i / 5 * 11) % 251) as f32 / 32.0 - 3.9);
        }
        new
    }

    fn place(&self, index: [usize; 4]) -> usize {
        index.iter().zip(self.strides).map(|(i, stride)| i * stride).sum()
    }

    pub fn set(&mut self, index: [usize; 4], number: f32) {
        let at = self.place(index);
        self.data[at] = T::from_acc(number);
    }

    pub fn volume(&mut self) -> Volume<'_, T> {
        let ([n, c, h, w], [sample, channel, row, column]) = (self.sizes, self.strides);
        // SAFETY: the vector has the elements, uniquely owned during the borrow.
        let data = unsafe { Lanes::new(self.data.as_mut_ptr()) };
        Volume { data, sizes: [n, c, 1, h, w], strides: [sample, channel, 0, row, column] }
    }

    pub fn at(&self, index: [usize; 4]) -> f64 {
        self.data[self.place(index)].to_f64()
    }

    /// The elements in row-major order, and the number of gap elements that are no longer NaN.
    pub fn elements(&self) -> (Vec<u32>, usize) {
        let all: Vec<u32> = each(self.sizes).map(|at| self.data[self.place(at)].to_acc().to_bits()).collect();
        let numbers = self.data.iter().filter(|v| !v.to_acc().is_nan()).count();
        let others = numbers - all.len();
        (all, others)
    }
}

/// Each kind of case, including several work items and several staged parts of the result.
fn all_cases() -> Vec<Case> {
    let mut all = cases();
    all.extend([
        Case { image: [1, 32, 21, 60], rows: 33, bias: true, ..PLAIN },
        Case { image: [3, 32, 14, 14], rows: 32, bias: true, ..PLAIN },
        Case { image: [7, 33, 7, 5], rows: 40, ..PLAIN },
        Case { image: [1, 24, 9, 200], rows: 44, padding: [2, 2], bias: true, ..PLAIN },
        Case { image: [2, 32, 30, 30], rows: 40, kernel: [1, 1], padding: [0, 0], bias: true, ..PLAIN },
        Case { image: [2, 1, 9, 8], rows: 1, ..PLAIN },
        Case { image: [2, 40, 6, 1], rows: 33, ..PLAIN },
    ]);
    all
}

/// Depthwise cases, with whole vectors of channels and a partial last one.
fn by_channel() -> [Case; 2] {
    let plain = Case { image: [2, 32, 9, 13], groups: 32, bias: true, ..PLAIN };
    [plain, Case { image: [1, 37, 30, 41], rows: 37, groups: 37, stride: [1, 2], ..plain }]
}

/// Whether the emulated unit is fast enough for this case.
fn is_small(case: &Case) -> bool {
    let [n, _, height, width] = case.results();
    let [rows, channels, down, across] = case.kernels();
    n * height * width * rows * channels * down * across < 3 << 20
}

/// The epilogue of a test.
#[derive(Clone, Copy, Debug)]
enum Follows {
    Nothing,
    Silu,
    ReluOfSum,
}

const FOLLOWS: [Follows; 3] = [Follows::Nothing, Follows::Silu, Follows::ReluOfSum];

/// Computes a convolution with an epilogue, and returns its results.
fn convolved<T: Pixel>(
    case: Case,
    (orders, follows): ([Order; 2], Follows),
    run: impl Fn(Product<'_, T>) -> Result<(), Error>,
) -> Result<Vec<u32>, Error> {
    let mut input = Tensor::<T>::new(case.image, orders[0], 0);
    let mut weight =
        Tensor::<T>::new(case.kernels(), if case.contiguous { RowMajor } else { ChannelsLast }, 5);
    let mut out = Tensor::<T>::new(case.results(), orders[1], 9);
    let bias = case.bias.then(|| (0..case.rows).map(|i| T::from_acc(i as f32 / 8.0)).collect::<Vec<T>>());
    let volumes = [image(input.volume())?, weight.volume(), results(out.volume())?];
    let mut add = Tensor::<T>::new(case.results(), orders[1], 21);
    let epilogue = match follows {
        Follows::Nothing => Epilogue::NONE,
        Follows::Silu => Epilogue::silu(),
        Follows::ReluOfSum => Epilogue::relu_of_sum_with(add.volume().data),
    };
    run(Product { epilogue, ..case.product(volumes, bias.as_deref()) })?;
    let (elements, others) = out.elements();
    assert_eq!(others, 0, "{case:?} {orders:?} {follows:?}: written between the results");
    Ok(elements)
}

/// Compares pairs of layouts with channels_last.
fn check(case: Case, pairs: &[[Order; 2]], run: impl Fn([Order; 2]) -> Result<Vec<u32>, Error>) {
    let expected = run([ChannelsLast; 2]).expect("memory");
    for &orders in pairs {
        let got = run(orders).expect("memory");
        let wrong = expected.iter().zip(&got).filter(|(a, b)| a != b).count();
        assert_eq!(wrong, 0, "{case:?}, {orders:?}, of {} results", expected.len());
    }
}

#[test]
fn convolutions_by_vectors() {
    let pairs = [
        [RowMajor, RowMajor],
        [Apart, Apart],
        [RowMajor, ChannelsLast],
        [ChannelsLast, RowMajor],
        [Apart, Columns],
    ];
    for case in all_cases().into_iter().chain(by_channel()) {
        for follows in FOLLOWS {
            check(case, &pairs, |orders| {
                // SAFETY: the tensors have the elements of their sizes; the results are accessed there alone.
                convolved::<f32>(case, (orders, follows), |of| unsafe { of.run() })
            });
            check(case, &pairs[..1], |orders| {
                // SAFETY: as above.
                convolved::<f16>(case, (orders, follows), |of| unsafe { of.run() })
            });
        }
    }
}

/// The algorithms that programs must opt in to; and their epilogue is the same as that of direct sums.
#[test]
fn convolutions_by_larger_tiles() {
    let fits = |case: &Case| {
        case.kernel == [3, 3] && case.stride == [1, 1] && case.dilation == [1, 1] && case.groups == 1
    };
    for case in all_cases().into_iter().filter(fits) {
        for follows in FOLLOWS {
            let by_tiles = |orders| {
                convolved::<f32>(case, (orders, follows), |of| {
                    // SAFETY: the tensors have the elements of their sizes; the results are accessed there alone.
                    unsafe { Algorithm::F4x4.run(&of) }.map(|finite| assert!(finite))
                })
            };
            check(case, &[[RowMajor, RowMajor], [Apart, Columns], [RowMajor, ChannelsLast]], by_tiles);
            // SAFETY: as above.
            let direct = convolved::<f32>(case, ([ChannelsLast; 2], follows), |of| unsafe { of.in_blocks() });
            let [got, direct] = [by_tiles([ChannelsLast; 2]), direct]
                .map(|bits| bits.unwrap().into_iter().map(f32::from_bits).collect::<Vec<f32>>());
            let largest = direct.iter().fold(0.0f32, |most, x| most.max(x.abs()));
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * largest;
            assert!(got.iter().zip(&direct).all(near), "{case:?}, {follows:?}");
        }
    }
}

#[test]
fn convolutions_by_tiles() {
    for case in all_cases().into_iter().filter(is_small) {
        let pairs = [[RowMajor, RowMajor], [Apart, Columns]];
        for follows in FOLLOWS {
            check(case, &pairs, |orders| {
                // SAFETY: as above.
                convolved::<bf16>(case, (orders, follows), |of| unsafe { by_tiles::run(Emulated, &of) })
            });
        }
    }
}

fn summed_up<T: Pixel>(
    case: Case,
    orders: [Order; 2],
    run: impl Fn([&Volume<'_, T>; 3]) -> Result<(), Error>,
) -> Result<Vec<u32>, Error> {
    let mut input = Tensor::<T>::new(case.image, orders[0], 0);
    let mut grad = Tensor::<T>::new(case.results(), orders[1], 5);
    let mut out = Tensor::<T>::new(case.kernels(), RowMajor, 9);
    run([&image(grad.volume())?, &image(input.volume())?, &out.volume()])?;
    Ok(out.elements().0)
}

#[test]
fn gradients_of_weights() {
    for case in all_cases() {
        let moves = case.moves();
        let pairs =
            [[RowMajor, RowMajor], [Apart, Apart], [ChannelsLast, RowMajor], [RowMajor, ChannelsLast]];
        check(case, &pairs, |orders| {
            // SAFETY: as above.
            summed_up::<f32>(case, orders, |[grad, input, out]| unsafe {
                summed::run(grad, input, out, &moves)
            })
        });
        check(case, &pairs[..1], |orders| {
            // SAFETY: as above.
            summed_up::<f16>(case, orders, |[grad, input, out]| unsafe {
                summed::run(grad, input, out, &moves)
            })
        });
        if !is_small(&case) {
            continue;
        }
        check(case, &pairs[..2], |orders| {
            // SAFETY: as above.
            summed_up::<bf16>(case, orders, |[grad, input, out]| unsafe {
                sum_by_tiles::run(Emulated, grad, input, out, &moves).map(|finite| assert!(finite))
            })
        });
    }
}

#[test]
fn columns_of_a_plane_that_lie_apart_are_left_to_others() {
    for order in [Apart, Columns] {
        let read = image(Tensor::<f32>::new([2, 3, 4, 5], order, 0).volume()).map(|of| of.strides);
        match order {
            Columns => assert!(matches!(read, Err(Error::Unsupported { .. })), "{read:?}"),
            _ => assert_eq!(read.unwrap(), [111, 37, 1, 8, 1]),
        }
    }
}
