use super::super::tables::{Mode, Spacing};
use super::*;
use keyway_sdk::author::{Element, Lanes as Data};
use keyway_sdk::half::{bf16, f16};

/// Steps of a tensor in this order of its dimensions, innermost last, with `gap` elements from one to the next.
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
            for (order, out_order, gap, turned) in
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
                if turned {
                    tables = std::array::from_fn(|d| tables[d].transposed(sizes[d + 2]).expect("memory"));
                    std::mem::swap(&mut sizes, &mut out_sizes);
                }
                let (strides, to) = (steps(sizes, order, gap), steps(out_sizes, out_order, gap));
                let count = |sizes: [usize; 5]| sizes.iter().product::<usize>() * gap;
                let mut image: Vec<T> =
                    (0..count(sizes)).map(|i| T::from_f64((i * 7919 % 1009) as f64 / 504.5 - 1.0)).collect();
                let mut results = vec![T::from_f64(9.0); count(out_sizes)];
                // SAFETY: the vectors have as many elements as these sizes and steps name, and the tables are of these sizes.
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

#[test]
fn pixels_of_any_size_are_copied_alone() {
    for n in [0, 1, 31, 32, 33, 63, 64, 65, 200, 5000] {
        let from: Vec<u16> = (0..n as u16).collect();
        let mut to = vec![u16::MAX; n + 2];
        // SAFETY: there are the elements and the places.
        unsafe { copy(from.as_ptr(), to.as_mut_ptr().add(1), n) };
        assert_eq!(to[1..=n], from);
        assert_eq!((to[0], to[n + 1]), (u16::MAX, u16::MAX));
    }
}
