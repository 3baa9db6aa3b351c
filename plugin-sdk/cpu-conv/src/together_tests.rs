//! Groups of few channels: compares results with sums in f64, and tests the cases that are left to other kernels.

use crate::image::{Pixel, image};
use crate::order_tests::{ChannelsLast, Order, RowMajor, Tensor};
use crate::product::Product;
use crate::tile_tests::{Case, PLAIN, each};
use crate::{results, summed, together};
use keyway_sdk::half::{bf16, f16};

const CASES: [Case; 6] = [
    Case { image: [2, 32, 8, 7], rows: 32, groups: 8, bias: true, ..PLAIN },
    // More rows than channels, and fewer.
    Case { image: [1, 24, 6, 5], rows: 48, groups: 12, stride: [2, 1], ..PLAIN },
    Case { image: [3, 12, 9, 4], rows: 6, groups: 3, dilation: [1, 2], padding: [1, 2], bias: true, ..PLAIN },
    // All groups merged, and a divisor of their number.
    Case { image: [1, 15, 6, 5], rows: 10, groups: 5, kernel: [1, 1], padding: [0, 0], ..PLAIN },
    Case { image: [1, 42, 5, 5], rows: 42, groups: 14, ..PLAIN },
    Case { image: [2, 64, 12, 20], rows: 64, groups: 32, ..PLAIN },
];

/// Compares with a tolerance for sums of elements below 4, rounded once.
fn near<T: Pixel>(got: f64, expected: f64, what: &str) {
    let unit = if size_of::<T>() == 4 { 1e-5 } else { 1e-2 };
    let same = got == expected || (got.is_nan() && expected.is_nan());
    assert!(
        same || (got - expected).abs() <= unit * expected.abs() + 20.0 * unit,
        "{what}: {got}, not {expected}"
    );
}

fn convolve<T: Pixel>(case: Case, order: Order) {
    convolve_with::<T>(case, order, None);
}

/// As [`convolve`], with one element of the input replaced.
fn convolve_with<T: Pixel>(case: Case, order: Order, other: Option<([usize; 4], f32)>) {
    let (rows, channels) = (case.rows / case.groups, case.image[1] / case.groups);
    assert!(together::count::<T>(case.groups, rows, channels).unwrap() > 1, "{case:?}");
    let mut input = Tensor::<T>::new(case.image, order, 0);
    if let Some((at, number)) = other {
        input.set(at, number);
    }
    let mut weight = Tensor::<T>::new(case.kernels(), order, 5);
    let mut out = Tensor::<T>::new(case.results(), order, 9);
    let bias = case.bias.then(|| (0..case.rows).map(|i| T::from_acc(i as f32 / 8.0)).collect::<Vec<T>>());
    let volumes = [image(input.volume()).unwrap(), weight.volume(), results(out.volume()).unwrap()];
    let product: Product<'_, T> = case.product(volumes, bias.as_deref());
    // SAFETY: the tensors have the elements of their sizes; the results are accessed here alone.
    unsafe { product.run() }.expect("memory");
    for at @ [i, k, y, x] in each(case.results()) {
        let terms = each([1, channels, case.kernel[0], case.kernel[1]]).filter_map(|[_, c, ty, tx]| {
            let [py, px] = case.pixel([y, x], [ty, tx])?;
            Some(input.at([i, k / rows * channels + c, py, px]) * weight.at([k, c, ty, tx]))
        });
        let expected = terms.sum::<f64>() + bias.as_ref().map_or(0.0, |bias| bias[k].to_f64());
        near::<T>(out.at(at), expected, &format!("{case:?} {order:?} {at:?}"));
    }
    assert!(other.is_some() || out.elements().1 == 0, "{case:?} {order:?}: written between the results");
}

fn sum_over_places<T: Pixel>(case: Case, order: Order) {
    let (rows, channels) = (case.rows / case.groups, case.image[1] / case.groups);
    let mut input = Tensor::<T>::new(case.image, order, 0);
    let mut grad = Tensor::<T>::new(case.results(), order, 5);
    let mut out = Tensor::<T>::new(case.kernels(), order, 9);
    let (of, moves) = ([image(grad.volume()).unwrap(), image(input.volume()).unwrap()], case.moves());
    // SAFETY: as above.
    unsafe { summed::run(&of[0], &of[1], &out.volume(), &moves) }.expect("memory");
    for at @ [k, c, ty, tx] in each(case.kernels()) {
        let [n, _, height, width] = case.results();
        let terms = each([n, 1, height, width]).filter_map(|[i, _, y, x]| {
            let [py, px] = case.pixel([y, x], [ty, tx])?;
            Some(input.at([i, k / rows * channels + c, py, px]) * grad.at([i, k, y, x]))
        });
        near::<T>(out.at(at), terms.sum(), &format!("{case:?} {order:?} {at:?}"));
    }
    assert_eq!(out.elements().1, 0, "{case:?} {order:?}: written between the results");
}

fn convolve_and_sum<T: Pixel>() {
    for case in CASES {
        for order in [ChannelsLast, RowMajor] {
            convolve::<T>(case, order);
            sum_over_places::<T>(case, order);
        }
    }
}

#[test]
fn results_and_gradients_of_weights_are_those_of_each_group() {
    convolve_and_sum::<f32>();
    convolve_and_sum::<f16>();
    convolve_and_sum::<bf16>();
}

#[test]
fn infinities_reach_their_own_group_alone() {
    let case = Case { bias: false, ..CASES[0] };
    for order in [ChannelsLast, RowMajor] {
        for number in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            for at in each(case.image).step_by(97) {
                convolve_with::<f32>(case, order, Some((at, number)));
                convolve_with::<bf16>(case, order, Some((at, number)));
            }
        }
    }
}
