use super::*;
use keyway_sdk::author::Lanes as Data;

/// Strides of a dense tensor whose dimensions are in this order in memory, innermost last.
fn steps(sizes: [usize; 5], order: [usize; 5]) -> [usize; 5] {
    let (mut steps, mut step) = ([0; 5], 1);
    for d in order.into_iter().rev() {
        steps[d] = step;
        step *= sizes[d];
    }
    steps
}

fn check<T: Lanes>(tolerance: f64) {
    const ROWS: [usize; 5] = [0, 1, 2, 3, 4];
    const LAST: [usize; 5] = [0, 2, 3, 4, 1];
    let adaptive = |size: usize, count: usize| windows(size, count).expect("memory");
    // Windows of two elements with stride 3, as in `avg_pool`; the elements between and after them are in no window.
    let apart = |size: usize| (0..size / 3).map(|i| 3 * i..3 * i + 2).collect::<Vec<_>>();
    let problems = [
        ([1, 1, 1, 1, 1], [1, 1, 1].map(|_| adaptive(1, 1))),
        ([2, 5, 1, 14, 14], [adaptive(1, 1), adaptive(14, 5), adaptive(14, 5)]),
        ([1, 70, 3, 7, 9], [adaptive(3, 2), adaptive(7, 7), adaptive(9, 4)]),
        ([3, 33, 1, 6, 20], [adaptive(1, 1), apart(6), apart(20)]),
        ([1, 32, 1, 9, 13], [adaptive(1, 1), adaptive(9, 20), adaptive(13, 3)]),
        ([2, 3, 1, 4, 100], [adaptive(1, 1), apart(4), adaptive(100, 7)]),
    ];
    for (sizes, windows) in &problems {
        let [n, c, ..] = *sizes;
        let of_grad = [n, c, windows[0].len(), windows[1].len(), windows[2].len()];
        for (order, out_order) in [(ROWS, ROWS), (LAST, LAST), (LAST, ROWS), (ROWS, [0, 1, 2, 4, 3])] {
            let (strides, out_strides) = (steps(of_grad, order), steps(*sizes, out_order));
            let number = |i: usize| T::from_f64((i * 7919 % 1009) as f64 / 504.5 - 1.0);
            let mut grad: Vec<T> = (0..of_grad.iter().product()).map(number).collect();
            let mut results = vec![T::from_f64(9.0); sizes.iter().product()];
            let weight =
                |d: usize, window: &Range<usize>| T::Acc::from_f64((d + 1) as f64 / window.len() as f64);
            // SAFETY: the vectors have the elements that these sizes and strides describe.
            unsafe {
                let grad = Volume { data: Data::new(grad.as_mut_ptr()), sizes: of_grad, strides };
                let out =
                    Volume { data: Data::new(results.as_mut_ptr()), sizes: *sizes, strides: out_strides };
                spread_back(&grad, &out, windows, weight).expect("memory");
            }
            let at =
                |index: [usize; 5], steps: [usize; 5]| (0..5).map(|d| index[d] * steps[d]).sum::<usize>();
            for i in 0..results.len() {
                let (mut index, mut rest) = ([0; 5], i);
                for d in (0..5).rev() {
                    (index[d], rest) = (rest % sizes[d], rest / sizes[d]);
                }
                let over =
                    |d: usize| windows[d].iter().enumerate().filter(move |(_, w)| w.contains(&index[d + 2]));
                let mut sum = 0.0;
                for (z, a) in over(0) {
                    for (y, b) in over(1) {
                        for (x, c) in over(2) {
                            let weights =
                                weight(0, a).to_f64() * weight(1, b).to_f64() * weight(2, c).to_f64();
                            sum += grad[at([index[0], index[1], z, y, x], strides)].to_f64() * weights;
                        }
                    }
                }
                let (got, what) =
                    (results[at(index, out_strides)].to_f64(), format!("{} {sizes:?} {index:?}", T::NAME));
                assert!(
                    (got - sum).abs() <= tolerance * sum.abs().max(1.0),
                    "{what} {out_order:?}: {got}, not {sum}"
                );
            }
        }
    }
}

#[test]
fn each_element_has_the_sum_of_what_the_windows_over_it_have() {
    check::<f64>(1e-13);
    check::<f32>(1e-5);
    check::<f16>(2e-3);
    check::<bf16>(1e-2);
}
