use super::super::grid::tests::{LAST, PADDINGS, ROWS, count, numbers, steps, taps, volume};
use super::super::packed::is_sparse;
use super::super::side::{Mode, Padding};
use super::*;

/// A test case: images, locations, and the dimension order and the innermost stride of each.
#[derive(Clone, Copy, Debug)]
struct Problem {
    image: [usize; 5],
    spatial: [usize; 3],
    order: [usize; 5],
    grad_order: [usize; 5],
    gap: usize,
    mode: Mode,
    padding: Padding,
    align_corners: bool,
}

impl Problem {
    fn side(&self, d: usize) -> Side {
        let Problem { mode, padding, align_corners, .. } = *self;
        Side { size: self.image[d + 2], mode, padding, align_corners }
    }

    /// The elements and weights of a pixel at the location `[z, y, x]`.
    fn elements(&self, place: [f64; 3], rank: usize) -> Vec<([usize; 3], f64)> {
        let along = |d: usize| {
            if d < 3 - rank { vec![(0, 1.0)] } else { taps(&self.side(d), place[d]) }
        };
        let [z, y, x] = [along(0), along(1), along(2)];
        let mut all = Vec::new();
        for (z, a) in z {
            for &(y, b) in &y {
                all.extend(x.iter().map(|&(x, c)| ([z, y, x], a * b * c)));
            }
        }
        all
    }
}

fn flat(index: &[usize], steps: &[usize]) -> usize {
    index.iter().zip(steps).map(|(i, s)| i * s).sum()
}

fn indices(sizes: [usize; 5]) -> impl Iterator<Item = [usize; 5]> {
    (0..sizes.iter().product()).map(move |i| {
        let (mut index, mut rest) = ([0; 5], i);
        for d in (0..5).rev() {
            (index[d], rest) = (rest % sizes[d], rest / sizes[d]);
        }
        index
    })
}

/// Whether the weights are differentiable at a location, so that finite differences apply.
fn is_smooth(problem: &Problem, place: [f64; 3], rank: usize) -> bool {
    (3 - rank..3).all(|d| {
        let side = problem.side(d);
        let last = side.size as f64 - 1.0;
        let at = (place[d] + 1.0) * if side.align_corners { last / 2.0 } else { side.size as f64 / 2.0 };
        // Elements' centres and outer edges are at multiples of 0.5; a NaN location has no weights.
        !at.is_finite() || ((at * 2.0) - (at * 2.0).round()).abs() > 1e-3
    })
}

fn check<T: Elements>(problem: Problem, tolerance: f64) {
    let Problem { image: sizes, spatial, .. } = problem;
    let mut random = numbers(sizes.iter().chain(&spatial).sum());
    let rank = if sizes[2] == 1 && spatial[0] == 1 { 2 } else { 3 };
    let grad_sizes = [sizes[0], sizes[1], spatial[0], spatial[1], spatial[2]];
    let strides = steps(sizes, problem.order, problem.gap);
    let grad_strides = steps(grad_sizes, problem.grad_order, problem.gap);
    let mut fill = |n: usize| -> Vec<T> { (0..n).map(|_| T::from_f64(random() * 2.0 - 1.0)).collect() };
    let mut image = fill(count(sizes, strides));
    let mut grad = fill(count(grad_sizes, grad_strides));
    let pixels: usize = spatial.iter().product();
    let mut grid = fill(sizes[0] * pixels * rank);
    for at in &mut grid {
        *at = T::from_f64(at.to_f64() * 1.6);
    }
    for (i, value) in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 600.0].into_iter().enumerate() {
        let at = i * 7 % grid.len();
        grid[at] = T::from_f64(value);
    }
    let place = |index: [usize; 5]| {
        let pixel = flat(&index[2..], &[spatial[1] * spatial[2], spatial[2], 1]);
        let axis = |d: usize| {
            if d < 3 - rank { 0.0 } else { grid[(index[0] * pixels + pixel) * rank + 2 - d].to_f64() }
        };
        [axis(0), axis(1), axis(2)]
    };
    // The expected gradients: of the image by the definition, of the grid by finite differences.
    let mut of_image = vec![(0.0, 0.0); sizes.iter().product()];
    let mut of_grid = vec![(0.0, 0.0); grid.len()];
    let dense = steps(sizes, ROWS, 1);
    for index in indices(grad_sizes) {
        let (at, of) = (place(index), grad[flat(&index, &grad_strides)].to_f64());
        let pixel = index[0] * pixels + flat(&index[2..], &[spatial[1] * spatial[2], spatial[2], 1]);
        let channel = |[z, y, x]: [usize; 3], to: &mut dyn FnMut(usize, f64)| {
            let element = [index[0], index[1], z, y, x];
            to(flat(&element, &dense), image[flat(&element, &strides)].to_f64());
        };
        for (element, weight) in problem.elements(at, rank) {
            channel(element, &mut |to, _| {
                of_image[to].0 += of * weight;
                of_image[to].1 += (of * weight).abs();
            });
        }
        let step = 1e-6;
        for d in 3 - rank..3 {
            for sign in [1.0, -1.0] {
                let mut moved = at;
                moved[d] += sign * step;
                for (element, weight) in problem.elements(moved, rank) {
                    channel(element, &mut |_, value| {
                        let term = of * value * weight * sign / (2.0 * step);
                        let sum = &mut of_grid[pixel * rank + 2 - d];
                        (sum.0, sum.1) = (sum.0 + term, sum.1 + (of * value).abs());
                    });
                }
            }
        }
    }
    let smooth: Vec<bool> = indices([sizes[0], 1, spatial[0], spatial[1], spatial[2]])
        .flat_map(|index| vec![is_smooth(&problem, place(index), rank); rank])
        .collect();
    let compare =
        |what: &str, got: &[f64], expected: &[(f64, f64)], extra: f64, some: &dyn Fn(usize) -> bool| {
            for (i, (got, (expected, size))) in got.iter().zip(expected).enumerate().filter(|(i, _)| some(*i))
            {
                let near = (got - expected).abs() <= tolerance * size.max(1e-30) + extra;
                assert!(
                    near || got.is_nan() && expected.is_nan(),
                    "{} {what} {problem:?} {i}: {got}, not {expected}",
                    T::NAME
                );
            }
        };

    let mut results = vec![T::from_f64(7.0); count(sizes, strides)];
    let sides = || [0, 1, 2].map(|d| problem.side(d));
    let grid_of = |grid: &mut [T]| Grid {
        // SAFETY: the vector has the elements that these sizes describe, and outlives the grid.
        data: unsafe { Lanes::new(grid.as_mut_ptr()) },
        rank,
        of_sample: pixels * rank,
        of_position: [rank * spatial[1] * spatial[2], rank * spatial[2], rank],
        of_axis: 1,
    };
    let of_images = Gradients {
        grad: volume(&mut grad, grad_sizes, grad_strides),
        image: volume(&mut results, sizes, strides),
        sides: sides(),
        grid: grid_of(&mut grid),
    };
    // SAFETY: the vectors have the elements of these sizes and strides.
    unsafe { of_images.of_images() }.expect("memory");
    let got: Vec<f64> = indices(sizes).map(|index| results[flat(&index, &strides)].to_f64()).collect();
    // The smallest values of f16 differ by 6e-8.
    compare("images", &got, &of_image, tolerance * 1e-4, &|_| true);

    let mut results = vec![T::from_f64(7.0); grid.len()];
    let of = Gradients {
        grad: volume(&mut grad, grad_sizes, grad_strides),
        image: volume(&mut image, sizes, strides),
        sides: sides(),
        grid: grid_of(&mut grid),
    };
    let of_grid_kernel = OfGrid { of: &of, out: grid_of(&mut results) };
    // SAFETY: as above.
    unsafe { of_grid_kernel.run() }.expect("memory");
    let got: Vec<f64> = results.iter().map(|number| number.to_f64()).collect();
    // Finite differences in f64 have an error of about 1e-9; for large images, elements are closer to each other than
    // locations.
    let scale = sizes[2..].iter().max().map_or(1.0, |size| *size as f64);
    let of_grid: Vec<(f64, f64)> = of_grid.into_iter().map(|(sum, size)| (sum, size * scale)).collect();
    compare("grid", &got, &of_grid, 1e-6 * scale, &|i| smooth[i]);
    if let Some(other) = block_that_is_not_chosen(&of) {
        let mut again = vec![T::from_f64(7.0); grid.len()];
        let kernel = OfGrid { of: &of, out: grid_of(&mut again) };
        // SAFETY: as above.
        unsafe { if other == 0 { kernel.strided() } else { kernel.packed(other) } }.expect("memory");
        if problem.mode != Mode::Nearest {
            let got: Vec<f64> = again.iter().map(|number| number.to_f64()).collect();
            compare("grid, the other way", &got, &of_grid, 1e-6 * scale, &|i| smooth[i]);
        }
    }
}

/// The alternative loop order for the gradient of a grid: a block of channels, or 0 for channels in place.
fn block_that_is_not_chosen<T: Elements>(of: &Gradients<'_, T>) -> Option<usize> {
    let is_dense = of.grad.strides[1] == 1 && of.image.strides[1] == 1;
    let block = block(&of.image)?;
    Some(if is_dense || is_sparse(&of.image, of.pixels()) { block } else { 0 })
}

fn check_all<T: Elements>(tolerance: f64) {
    let shapes = [
        ([2, 5, 1, 7, 3], [1, 5, 9]),
        ([1, 70, 1, 4, 9], [1, 3, 13]),
        ([3, 3, 1, 2, 6], [1, 1, 8]),
        ([1, 2, 1, 40, 17], [1, 2, 3]),
        ([1, 17, 1, 9, 8], [1, 17, 21]),
        ([2, 6, 3, 2, 4], [2, 3, 5]),
    ];
    let mut n = 0;
    for (image, spatial) in shapes {
        let modes = [Mode::Bilinear, Mode::Nearest, Mode::Bicubic];
        let is_volume = image[2] > 1 || spatial[0] > 1;
        for mode in modes.into_iter().filter(|mode| *mode != Mode::Bicubic || !is_volume) {
            for padding in PADDINGS {
                for (order, grad_order) in [(ROWS, ROWS), (LAST, LAST), (LAST, ROWS), (ROWS, [0, 1, 2, 4, 3])]
                {
                    // Tests pairwise combinations, as the full product is too large.
                    n += 1;
                    let (gap, align_corners) = ([1, 1, 3][n % 3], n % 2 == 0);
                    check::<T>(
                        Problem { image, spatial, order, grad_order, gap, mode, padding, align_corners },
                        tolerance,
                    );
                }
            }
        }
    }
}

#[test]
fn gradients_are_what_the_definition_says() {
    check_all::<f64>(1e-12);
    check_all::<f32>(1e-6);
    check_all::<f16>(1e-3);
    check_all::<bf16>(8e-3);
}
