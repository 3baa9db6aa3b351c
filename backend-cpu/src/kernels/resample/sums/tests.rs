use super::super::tables::{Mode, Spacing};
use super::*;
use keyway_sdk::author::{Element, Lanes as Data};
use keyway_sdk::half::{bf16, f16};

/// Strides of a tensor with this memory order of dimensions, innermost last, where the innermost has stride `gap`.
fn steps(sizes: [usize; 5], order: [usize; 5], gap: usize) -> [usize; 5] {
    let (mut steps, mut step) = ([0; 5], gap);
    for d in order.into_iter().rev() {
        steps[d] = step;
        step *= sizes[d];
    }
    steps
}

fn check<T: Lanes>(tolerance: f64) {
    const ROWS: [usize; 5] = [0, 1, 2, 3, 4];
    const LAST: [usize; 5] = [0, 2, 3, 4, 1];
    let problems = [
        ([1, 1, 1, 1], [1, 1, 1]),
        ([2, 3, 3, 5], [1, 6, 10]),
        ([3, 64, 2, 3], [1, 4, 7]),
        ([1, 70, 4, 3], [2, 3, 5]),
        ([2, 33, 5, 4], [3, 5, 1]),
        ([1, 130, 7, 6], [1, 3, 2]),
    ];
    for ([n, c, h, w], out) in problems {
        let (sizes, out_sizes) = ([n, c, 2, h, w], [n, c, out[0], out[1], out[2]]);
        for mode in [Mode::Nearest, Mode::NearestExact, Mode::Linear, Mode::Cubic] {
            for (order, out_order, gap, packed) in
                [(LAST, LAST, 1, false), (LAST, ROWS, 1, true), (ROWS, ROWS, 1, true), (ROWS, LAST, 2, false)]
            {
                let of = |d: usize| Spacing {
                    size: sizes[d],
                    count: out_sizes[d],
                    align_corners: false,
                    scale: None,
                };
                let mut tables = [2, 3, 4].map(|d| of(d).table::<T::Acc>(mode).expect("memory"));
                let (mut sizes, mut out_sizes) = (sizes, out_sizes);
                if packed {
                    tables = std::array::from_fn(|d| tables[d].transposed(sizes[d + 2]).expect("memory"));
                    std::mem::swap(&mut sizes, &mut out_sizes);
                }
                let (strides, to) = (steps(sizes, order, gap), steps(out_sizes, out_order, gap));
                let count = |sizes: [usize; 5]| sizes.iter().product::<usize>() * gap;
                let mut image: Vec<T> =
                    (0..count(sizes)).map(|i| T::from_f64((i * 7919 % 1009) as f64 / 504.5 - 1.0)).collect();
                let mut results = vec![T::from_f64(9.0); count(out_sizes)];
                // SAFETY: the vectors have the elements that these sizes and strides describe, and the tables are of these
                // sizes.
                unsafe {
                    let image = Volume { data: Data::new(image.as_mut_ptr()), sizes, strides };
                    let out = Volume { data: Data::new(results.as_mut_ptr()), sizes: out_sizes, strides: to };
                    weighted(&image, &out, &tables).expect("memory");
                }
                let at = |index: [usize; 5], steps: [usize; 5]| {
                    index.iter().zip(steps).map(|(i, s)| i * s).sum::<usize>()
                };
                for i in 0..out_sizes.iter().product() {
                    let (mut index, mut rest) = ([0; 5], i);
                    for d in (0..5).rev() {
                        (index[d], rest) = (rest % out_sizes[d], rest / out_sizes[d]);
                    }
                    let mut sum = 0.0;
                    for &(z, a) in tables[0].at(index[2]) {
                        for &(y, b) in tables[1].at(index[3]) {
                            for &(x, c) in tables[2].at(index[4]) {
                                let element = image[at([index[0], index[1], z, y, x], strides)].to_f64();
                                sum += element * a.to_f64() * b.to_f64() * c.to_f64();
                            }
                        }
                    }
                    let got = results[at(index, to)].to_f64();
                    let off = (got - sum).abs() / sum.abs().max(1.0);
                    let what = format!("{} {sizes:?} to {out_sizes:?} {mode:?} {order:?} {index:?}", T::NAME);
                    assert!(off <= tolerance, "{what}: {got}, not {sum}");
                }
                let untouched = results.iter().skip(1).step_by(gap).filter(|_| gap > 1);
                assert!(untouched.into_iter().all(|x| x.to_f64() == 9.0), "places between results");
            }
        }
    }
}

#[test]
fn sums_are_those_that_the_tables_name_whatever_the_layout() {
    check::<f64>(1e-13);
    check::<f32>(1e-5);
    check::<f16>(2e-3);
    check::<bf16>(1e-2);
}

fn check_picks<A: Lanes<Acc = A> + Real>() {
    let lanes = A::Vector::LANES;
    for size in [1, 2, lanes - 1, lanes, lanes + 1, 2 * lanes] {
        for (wide, step) in [(1, 1), (2, 2), (3, 1), (3, 2), (size, 1)] {
            let starts = (0..=size.saturating_sub(1)).step_by(step);
            let ranges: Vec<Range<usize>> = starts.map(|at| at..(at + wide).min(size)).collect();
            let table = Table::of_ranges(&ranges, A::from_f64(0.5)).unwrap();
            let columns = Columns::of(&table, ranges.len()).unwrap();
            let row: Vec<A> = (0..size).map(|i| A::from_f64((i * i % 17) as f64)).collect();
            let mut sums = vec![A::from_f64(-1.0); ranges.len()];
            // SAFETY: the indices in the table are within the row, and there is a sum for each range.
            unsafe { columns.pick::<A::Vector>(&row, &mut sums) };
            for (sum, range) in sums.iter().zip(&ranges) {
                let expected: f64 = row[range.clone()].iter().map(|x| x.to_f64() / 2.0).sum();
                assert_eq!(sum.to_f64(), expected, "{range:?} of {size}");
            }
        }
    }
}

#[test]
fn positions_are_permuted_from_two_vectors() {
    check_picks::<f32>();
    check_picks::<f64>();
}
