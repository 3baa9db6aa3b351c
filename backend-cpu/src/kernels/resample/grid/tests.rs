use super::*;
use crate::kernels::resample::side::{Mode, Padding};
use keyway_sdk::author::{Element, Lanes};

pub(in super::super) const PADDINGS: [Padding; 3] = [Padding::Zeros, Padding::Border, Padding::Reflection];

/// Pseudo-random values in 0..1.
pub(in super::super) fn numbers(seed: usize) -> impl FnMut() -> f64 {
    let mut state = seed as u64 + 1;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The expected elements and weights of one dimension at a location.
pub(in super::super) fn taps(side: &Side, place: f64) -> Vec<(usize, f64)> {
    let (size, last) = (side.size as f64, side.size as f64 - 1.0);
    let at = if side.align_corners { (place + 1.0) / 2.0 * last } else { ((place + 1.0) * size - 1.0) / 2.0 };
    let moved = |mut at: f64| {
        let (low, high) = if side.align_corners { (0.0, last) } else { (-0.5, last + 0.5) };
        match side.padding {
            Padding::Zeros => return at,
            Padding::Reflection if !at.is_finite() => return f64::NAN,
            Padding::Reflection if low == high => return 0.0,
            Padding::Reflection => {
                while at < low || at > high {
                    at = if at < low { 2.0 * low - at } else { 2.0 * high - at };
                }
            }
            Padding::Border => {}
        }
        if at.is_nan() { at } else { at.max(0.0).min(last) }
    };
    let all: Vec<(f64, f64)> = match side.mode {
        Mode::Nearest => vec![(moved(at).round_ties_even(), 1.0)],
        Mode::Bilinear => {
            let at = moved(at);
            vec![(at.floor(), 1.0 - (at - at.floor())), (at.floor() + 1.0, at - at.floor())]
        }
        Mode::Bicubic => {
            let weights = crate::kernels::resample::tables::cubic(at - at.floor());
            (0..4).map(|k| (moved(at.floor() + k as f64 - 1.0), weights[k])).collect()
        }
    };
    let inside = all.into_iter().filter(|(at, _)| *at >= 0.0 && *at <= last);
    inside.map(|(at, weight)| (at as usize, weight)).collect()
}

/// Strides of a tensor with this order of dimensions, innermost last, where the innermost has stride `gap`.
pub(in super::super) fn steps(sizes: [usize; 5], order: [usize; 5], gap: usize) -> [usize; 5] {
    let (mut steps, mut step) = ([0; 5], gap);
    for d in order.into_iter().rev() {
        steps[d] = step;
        step *= sizes[d];
    }
    steps
}

pub(in super::super) const ROWS: [usize; 5] = [0, 1, 2, 3, 4];
pub(in super::super) const LAST: [usize; 5] = [0, 2, 3, 4, 1];

pub(in super::super) fn volume<T>(data: &mut [T], sizes: [usize; 5], strides: [usize; 5]) -> Volume<'_, T> {
    // SAFETY: the callers create vectors with the elements that sizes and strides describe.
    Volume { data: unsafe { Lanes::new(data.as_mut_ptr()) }, sizes, strides }
}

pub(in super::super) fn count(sizes: [usize; 5], strides: [usize; 5]) -> usize {
    1 + sizes.iter().zip(strides).map(|(size, stride)| (size - 1) * stride).sum::<usize>()
}

/// A test case.
#[derive(Clone, Copy, Debug)]
struct Problem {
    image: [usize; 5],
    /// The order of the image's dimensions, the innermost stride, and whether the batch dimension is expanded.
    order: [usize; 5],
    gap: usize,
    expanded: bool,
    out: [usize; 3],
    out_order: [usize; 5],
    mode: Mode,
    padding: Padding,
    align_corners: bool,
    /// Whether some elements are infinite or NaN.
    odd: bool,
}

fn check<T: Elements>(problem: Problem, tolerance: f64) {
    let Problem { image: sizes, out, mode, padding, align_corners, .. } = problem;
    let mut random = numbers(sizes.iter().chain(&out).sum());
    let mut strides = steps(sizes, problem.order, problem.gap);
    if problem.expanded {
        strides[0] = 0;
    }
    let mut image: Vec<T> = (0..count(sizes, strides)).map(|_| T::from_f64(random() * 2.0 - 1.0)).collect();
    if problem.odd {
        for (i, odd) in [f64::INFINITY, f64::NAN, f64::NEG_INFINITY].into_iter().enumerate() {
            let at = i * image.len() / 3;
            image[at] = T::from_f64(odd);
        }
    }
    let rank = if sizes[2] == 1 && out[0] == 1 { 2 } else { 3 };
    let pixels = out.iter().product::<usize>();
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 1.0, 0.0, 600.0, -3.0];
    let mut grid: Vec<T> = (0..sizes[0] * pixels * rank).map(|_| T::from_f64(random() * 3.0 - 1.5)).collect();
    for (i, value) in special.into_iter().enumerate() {
        let at = i * 7 % grid.len();
        grid[at] = T::from_f64(value);
    }
    let out_sizes = [sizes[0], sizes[1], out[0], out[1], out[2]];
    let side = |d: usize| Side { size: sizes[d], mode, padding, align_corners };
    let expected = |index: [usize; 5], grid: &[T], image: &[T]| {
        let pixel = (index[2] * out[1] + index[3]) * out[2] + index[4];
        let along: [Vec<(usize, f64)>; 3] = std::array::from_fn(|d| match d < 3 - rank {
            true => vec![(0, 1.0)],
            false => taps(&side(d + 2), grid[(index[0] * pixels + pixel) * rank + 2 - d].to_f64()),
        });
        let mut sum = 0.0;
        for &(z, a) in &along[0] {
            for &(y, b) in &along[1] {
                for &(x, c) in &along[2] {
                    let at =
                        [index[0], index[1], z, y, x].iter().zip(strides).map(|(i, s)| i * s).sum::<usize>();
                    sum += image[at].to_f64() * T::Acc::from_f64(a * b * c).to_f64();
                }
            }
        }
        sum
    };
    let lanes = T::Vector::LANES;
    let mut first: Option<Vec<T>> = None;
    for way in [Way::Turned(lanes), Way::Turned(3 * lanes), Way::Planes(1), Way::Pixels] {
        let out_strides = steps(out_sizes, problem.out_order, 1);
        let mut results = vec![T::from_f64(7.0); count(out_sizes, out_strides)];
        let grid_strides = [pixels * rank, rank * out[1] * out[2], rank * out[2], rank];
        let sampling = Sampling {
            image: volume(&mut image, sizes, strides),
            out: volume(&mut results, out_sizes, out_strides),
            sides: [side(2), side(3), side(4)],
            grid: Grid {
                // SAFETY: as for the volumes.
                data: unsafe { Lanes::new(grid.as_mut_ptr()) },
                rank,
                of_sample: grid_strides[0],
                of_position: [grid_strides[1], grid_strides[2], grid_strides[3]],
                of_axis: 1,
            },
        };
        let fits = match way {
            Way::Turned(_) => sampling.step() == Some(1),
            Way::Planes(_) => sampling.step().is_some(),
            Way::Pixels => true,
        };
        if !fits {
            continue;
        }
        let way =
            if let (Way::Planes(_), Some(step)) = (way, sampling.step()) { Way::Planes(step) } else { way };
        // SAFETY: the vectors have the elements of these sizes and strides.
        unsafe { sampling.run(way) }.expect("memory");
        for i in 0..out_sizes.iter().product() {
            let mut index = [0; 5];
            let mut rest = i;
            for d in (0..5).rev() {
                (index[d], rest) = (rest % out_sizes[d], rest / out_sizes[d]);
            }
            let at = index.iter().zip(out_strides).map(|(i, s)| i * s).sum::<usize>();
            let (got, expected) = (results[at].to_f64(), expected(index, &grid, &image));
            let same = got == expected || got.is_nan() && expected.is_nan();
            assert!(
                same || (got - expected).abs() <= tolerance,
                "{} {problem:?} {way:?} at {index:?}: {got}, not {expected}",
                T::NAME
            );
        }
        // The loop order depends on the memory layout; all orders must compute the same values.
        match &first {
            None => first = Some(results),
            Some(first) => {
                let same =
                    |a: &T, b: &T| a.to_f64() == b.to_f64() || a.to_f64().is_nan() && b.to_f64().is_nan();
                assert!(first.iter().zip(&results).all(|(a, b)| same(a, b)), "{problem:?} {way:?}");
            }
        }
    }
}

fn check_all<T: Elements>(tolerance: f64) {
    let modes = [Mode::Bilinear, Mode::Nearest, Mode::Bicubic];
    let shapes = [
        ([1, 1, 1, 1, 1], [1, 1, 1]),
        ([2, 5, 1, 7, 3], [1, 5, 9]),
        ([1, 70, 1, 4, 9], [1, 3, 13]),
        ([3, 3, 1, 1, 6], [1, 1, 8]),
        ([1, 17, 1, 9, 8], [1, 17, 21]),
        ([2, 6, 3, 2, 4], [2, 3, 5]),
    ];
    let mut n = 0;
    for (image, out) in shapes {
        for mode in modes.into_iter().filter(|mode| *mode != Mode::Bicubic || image[2] == 1 && out[0] == 1) {
            for padding in PADDINGS {
                for (order, out_order) in [(ROWS, ROWS), (LAST, LAST), (LAST, ROWS), (ROWS, [0, 1, 2, 4, 3])]
                {
                    // Tests pairwise combinations, as the full product is too large.
                    n += 1;
                    let problem = Problem {
                        image,
                        order,
                        gap: [1, 1, 3][n % 3],
                        expanded: n % 5 == 0,
                        out,
                        out_order,
                        mode,
                        padding,
                        align_corners: n % 2 == 0,
                        odd: n % 7 == 0,
                    };
                    check::<T>(problem, tolerance);
                }
            }
        }
    }
}

#[test]
fn each_way_gives_what_the_definition_says() {
    check_all::<f64>(1e-12);
    check_all::<f32>(2e-5);
    check_all::<f16>(2e-3);
    check_all::<bf16>(1e-2);
}

#[test]
fn the_way_follows_from_the_layout() {
    let way = |sizes: [usize; 5], order, out: [usize; 3]| {
        let out_sizes = [sizes[0], sizes[1], out[0], out[1], out[2]];
        let mut none: [f32; 0] = [];
        // SAFETY: no element is read.
        let data = unsafe { Lanes::new(none.as_mut_ptr()) };
        let grid = Grid { data, rank: 2, of_sample: 0, of_position: [0; 3], of_axis: 0 };
        let side = |d: usize| Side {
            size: sizes[d],
            mode: Mode::Bilinear,
            padding: Padding::Zeros,
            align_corners: false,
        };
        Sampling {
            image: Volume { data, sizes, strides: steps(sizes, order, 1) },
            out: Volume { data, sizes: out_sizes, strides: steps(out_sizes, order, 1) },
            sides: [side(2), side(3), side(4)],
            grid,
        }
        .way()
    };
    assert!(matches!(way([8, 64, 1, 56, 56], ROWS, [1, 56, 56]), Way::Turned(_)));
    assert_eq!(way([8, 64, 1, 56, 56], LAST, [1, 56, 56]), Way::Pixels);
    assert_eq!(way([8, 1, 1, 56, 56], LAST, [1, 56, 56]), Way::Planes(1));
    // Few channels; an image that is mostly unread; an image that is too large to be copied.
    assert_eq!(way([1, 3, 1, 56, 56], ROWS, [1, 56, 56]), Way::Planes(1));
    assert_eq!(way([1, 64, 1, 560, 560], ROWS, [1, 5, 5]), Way::Planes(1));
    assert_eq!(way([1, 64, 1, 4000, 4000], ROWS, [1, 4000, 4000]), Way::Planes(1));
}
