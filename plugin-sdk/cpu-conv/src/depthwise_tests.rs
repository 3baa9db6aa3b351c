//! Compares depthwise convolutions, and both of their gradients, with sums in f64.

use crate::epilogue::Epilogue;
use crate::image::{Numbers, Pixel};
use crate::operands::Operands;
use crate::order_tests::{Apart, ChannelsLast, Order, RowMajor, Tensor};
use crate::tile_tests::{Case, PLAIN, each, sum};
use keyway_cpu_loops::vectors::Vector;
use keyway_sdk::author::Error;
use keyway_sdk::half::{bf16, f16};

/// Whole and partial vectors of channels, kernels of the specialised sizes and others, strides, dilation, padding wider
/// than the image, chunks of several images and of some rows of one, more channels than one pass processes.
fn cases() -> Vec<Case> {
    let of = |image: [usize; 4]| Case { image, rows: image[1], groups: image[1], ..PLAIN };
    vec![
        of([1, 16, 8, 8]),
        of([2, 2, 5, 9]),
        of([2, 33, 7, 6]),
        of([3, 130, 4, 3]),
        of([1, 275, 3, 2]),
        of([9, 17, 7, 7]),
        of([1, 20, 40, 30]),
        of([2, 3, 24, 37]),
        of([1, 16, 2, 300]),
        of([1, 50, 1, 701]),
        Case { bias: true, kernel: [1, 1], padding: [0, 0], ..of([2, 18, 4, 5]) },
        Case { padding: [0, 0], ..of([1, 19, 6, 5]) },
        Case { stride: [2, 2], bias: true, ..of([2, 35, 9, 10]) },
        Case { stride: [3, 2], padding: [2, 0], ..of([1, 24, 10, 9]) },
        Case { stride: [2, 3], kernel: [1, 2], padding: [0, 0], ..of([1, 17, 7, 11]) },
        Case { dilation: [2, 3], padding: [2, 3], ..of([1, 21, 8, 12]) },
        Case { dilation: [3, 1], stride: [1, 2], padding: [1, 4], contiguous: true, ..of([2, 9, 9, 7]) },
        Case { kernel: [5, 5], padding: [2, 2], bias: true, ..of([1, 34, 7, 15]) },
        Case { kernel: [7, 7], padding: [3, 3], contiguous: true, ..of([1, 5, 9, 8]) },
        Case { kernel: [2, 4], padding: [3, 7], dilation: [1, 2], ..of([1, 32, 3, 4]) },
        Case { kernel: [1, 19], padding: [0, 9], ..of([2, 21, 1, 40]) },
        Case { kernel: [3, 1], padding: [5, 0], ..of([1, 16, 2, 9]) },
    ]
}

#[derive(Clone, Copy, Debug)]
pub enum Op {
    Conv,
    InputGrad,
    WeightGrad,
}

const OPS: [Op; 3] = [Op::Conv, Op::InputGrad, Op::WeightGrad];

/// Runs an op on the tensors of a case (image, kernel and results), one of which is the output.
pub fn run<T: Pixel>(
    op: Op,
    case: Case,
    [image, weight, results]: [&mut Tensor<T>; 3],
    bias: &mut [T],
) -> Result<(), Error> {
    let (image, weight, results) = (image.volume(), weight.volume(), results.volume());
    // SAFETY: the slice has an element for each channel.
    let bias = (!bias.is_empty()).then(|| (unsafe { keyway_sdk::author::Lanes::new(bias.as_mut_ptr()) }, 1));
    let (inputs, out) = match op {
        Op::Conv => ([image, weight], results),
        Op::InputGrad => ([results, weight], image),
        Op::WeightGrad => ([results, image], weight),
    };
    let operands = Operands { inputs, bias, out, moves: case.moves(), epilogue: Epilogue::NONE };
    // SAFETY: the tensors have the elements of their sizes; the output is accessed here alone.
    unsafe {
        match op {
            Op::Conv => crate::conv(&operands),
            Op::InputGrad => crate::conv_input_grad(&operands),
            Op::WeightGrad => crate::conv_weight_grad(&operands),
        }
    }
}

/// The bits of an op's output, after a comparison with sums in f64.
fn checked<T: Pixel>(op: Op, case: Case, [of_image, of_results]: [Order; 2], rounding: f64) -> Vec<u32> {
    let mut image = Tensor::<T>::new(case.image, of_image, 0);
    let kernels = if case.contiguous { RowMajor } else { ChannelsLast };
    let mut weight = Tensor::<T>::new(case.kernels(), kernels, 5);
    let mut results = Tensor::<T>::new(case.results(), of_results, 9);
    let count = if matches!(op, Op::Conv) && case.bias { case.rows } else { 0 };
    let mut bias: Vec<T> = (0..count).map(|i| T::from_acc(i as f32 / 8.0 - 1.0)).collect();
    run(op, case, [&mut image, &mut weight, &mut results], &mut bias)
        .unwrap_or_else(|e| panic!("{op:?} of {case:?}: {e:?}"));
    let written = match op {
        Op::Conv => &results,
        Op::InputGrad => &image,
        Op::WeightGrad => &weight,
    };
    let mut sums: Vec<Vec<f64>> = each(written.sizes).map(|_| Vec::new()).collect();
    let number = |[_, b, c, d]: [usize; 4], [i, j, k, l]: [usize; 4]| ((i * b + j) * c + k) * d + l;
    for at @ [n, c, y, x] in each(case.results()) {
        for [_, _, ty, tx] in each([1, 1, case.kernel[0], case.kernel[1]]) {
            let Some([py, px]) = case.pixel([y, x], [ty, tx]) else { continue };
            let (pixel, tap) = ([n, c, py, px], [c, 0, ty, tx]);
            let (to, product) = match op {
                Op::Conv => (at, image.at(pixel) * weight.at(tap)),
                Op::InputGrad => (pixel, results.at(at) * weight.at(tap)),
                Op::WeightGrad => (tap, results.at(at) * image.at(pixel)),
            };
            sums[number(written.sizes, to)].push(product);
        }
    }
    for at in each(written.sizes) {
        let terms = sums[number(written.sizes, at)].iter().copied();
        let (expected, size) = sum(terms.chain(bias.get(at[1]).map(|bias| bias.to_f64())));
        let (got, bound) = (written.at(at), expected.abs() * rounding + size * 3e-6);
        assert!(
            (got - expected).abs() <= bound,
            "{op:?} of {case:?} at {at:?}: {got}, not {expected}, within {bound}"
        );
    }
    let (elements, others) = written.elements();
    assert_eq!(others, 0, "{op:?} of {case:?}: written between the results");
    elements
}

#[test]
fn each_op_is_right_at_all_edges() {
    for case in cases() {
        for op in OPS {
            checked::<f32>(op, case, [ChannelsLast; 2], 0.0);
            checked::<f16>(op, case, [ChannelsLast; 2], 1.0 / 2048.0);
            checked::<bf16>(op, case, [ChannelsLast; 2], 1.0 / 256.0);
        }
    }
}

#[test]
fn images_in_row_major_order_give_the_same_bits() {
    let all = [[RowMajor, ChannelsLast], [ChannelsLast, RowMajor], [Apart, RowMajor], [RowMajor, Apart]];
    for (case, op) in cases().into_iter().flat_map(|case| OPS.map(|op| (case, op))) {
        // Other orders are vectorised over positions.
        let is_written = |[image, results]: &[Order; 2]| {
            let planes = match op {
                Op::Conv => *results != ChannelsLast,
                Op::InputGrad => *image != ChannelsLast,
                Op::WeightGrad => ![*image, *results].contains(&ChannelsLast),
            };
            case.rows >= Numbers::LANES || !planes
        };
        let expected = checked::<f32>(op, case, [ChannelsLast; 2], 0.0);
        for orders in all.into_iter().filter(is_written) {
            assert_eq!(checked::<f32>(op, case, orders, 0.0), expected, "{op:?} of {case:?} {orders:?}");
        }
        let expected = checked::<bf16>(op, case, [ChannelsLast; 2], 1.0 / 256.0);
        for orders in all[2..].iter().copied().filter(is_written) {
            let got = checked::<bf16>(op, case, orders, 1.0 / 256.0);
            assert_eq!(got, expected, "{op:?} of {case:?} {orders:?}");
        }
    }
}

#[test]
fn few_planes_are_left_to_others() {
    let case = Case { image: [1, 7, 5, 6], rows: 7, groups: 7, ..PLAIN };
    for op in OPS {
        let mut image = Tensor::<f32>::new(case.image, RowMajor, 0);
        let mut weight = Tensor::new(case.kernels(), RowMajor, 5);
        let mut results = Tensor::new(case.results(), RowMajor, 9);
        let refused = run(op, case, [&mut image, &mut weight, &mut results], &mut []);
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{op:?}: {refused:?}");
    }
}
