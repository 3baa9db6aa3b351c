//! Mean and variance of dense rows, shared by the normalisations.

use super::buffer::Buffer;
use keyway_cpu_loops::vectors::{Lanes, MOST, Vector, halves, load_some, minus, plus, read_some, sum};
use keyway_cpu_loops::{CallExt, Contiguous};
use keyway_sdk::author::{Call, Error, Float, Real};

const LANES: usize = 32;

// Loops over indices of arrays are unrolled into registers; iterators of iterators are not, at this size.

/// The two sums of `f(x, y)`, accumulated in lanes; `x` and `y` have the same length.
#[inline(always)]
pub fn totals<X: Copy, Y: Copy, A: Real>(x: &[X], y: &[Y], f: impl Fn(X, Y) -> (A, A)) -> (A, A) {
    let (mut left, mut right) = ([A::ZERO; LANES], [A::ZERO; LANES]);
    let ((xs, x_rest), (ys, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in xs.iter().zip(ys) {
        for k in 0..LANES {
            let (a, b) = f(x[k], y[k]);
            left[k] += a;
            right[k] += b;
        }
    }
    for (k, (x, y)) in x_rest.iter().zip(y_rest).enumerate() {
        let (a, b) = f(*x, *y);
        left[k] += a;
        right[k] += b;
    }
    (halves(&mut left, |a, b| a + b), halves(&mut right, |a, b| a + b))
}

/// The number of vectors of each slice that are summed in parallel.
const VECTORS: usize = 4;

// Arrays are indexed: functions of arrays and iterators are not fully inlined, and calls pass vectors through memory.

/// Accumulates `f` over the vectors of `K` slices of the same length.
#[inline(always)]
#[allow(clippy::needless_range_loop)]
pub fn sums<T: Lanes, const K: usize, const N: usize>(
    slices: [&[T]; K],
    f: impl Fn([T::Vector; K], [T::Vector; N]) -> [T::Vector; N],
) -> [T::Acc; N] {
    let (lanes, zero) = (T::Vector::LANES, T::Vector::splat(T::Acc::ZERO));
    let mut n = slices[0].len();
    for k in 1..K {
        n = n.min(slices[k].len());
    }
    let mut all = [[zero; N]; VECTORS];
    let mut i = 0;
    while i + VECTORS * lanes <= n {
        for v in 0..VECTORS {
            all[v] = f(vectors(&slices, i + v * lanes, lanes), all[v]);
        }
        i += VECTORS * lanes;
    }
    while i < n {
        let some = lanes.min(n - i);
        let made = f(vectors(&slices, i, some), [zero; N]);
        for j in 0..N {
            // Lanes beyond the elements are masked out.
            all[0][j] = plus(all[0][j], if some == lanes { made[j] } else { first_of(made[j], some) });
        }
        i += lanes;
    }
    let mut totals = [T::Acc::ZERO; N];
    for j in 0..N {
        totals[j] = sum(plus(all[0][j], all[1][j]), plus(all[2][j], all[3][j]));
    }
    totals
}

/// Loads elements `i..i + n` of each slice, which must exist; a vector has at least `n` lanes.
#[inline(always)]
#[allow(clippy::needless_range_loop)]
fn vectors<T: Lanes, const K: usize>(slices: &[&[T]; K], i: usize, n: usize) -> [T::Vector; K] {
    let mut vectors = [T::Vector::splat(T::Acc::ZERO); K];
    for k in 0..K {
        // SAFETY: `sums` passes indices within each slice.
        vectors[k] = unsafe { read_some(slices[k].as_ptr().add(i), 1, n) };
    }
    vectors
}

/// The first `n` lanes; 0 in the others.
#[inline(always)]
pub fn first_of<V: Vector>(vector: V, n: usize) -> V {
    let mut copy = [V::Number::ZERO; MOST];
    // SAFETY: the array has the lanes of the widest vector.
    unsafe {
        vector.store(copy.as_mut_ptr());
        load_some(copy.as_ptr(), n)
    }
}

/// Mean and variance of a set of elements.
#[derive(Clone, Copy)]
pub struct Moments<A> {
    /// The mean, rounded.
    pub mean: A,
    /// The rounding error of the mean: for large values, far larger than the ULP of a normalised result.
    pub rest: A,
    /// The mean square of the deviations from the mean.
    pub variance: A,
}

impl<A: Real> Moments<A> {
    /// The moments of a nonempty row. The mean is computed from the differences from the first element, so that equal
    /// elements have variance 0.
    pub fn of<T: Lanes<Acc = A>>(x: &[T]) -> Self {
        let (count, first) = (A::from_f64(x.len() as f64), x[0].to_acc());
        let from = T::Vector::splat(first);
        let [distance] = sums([x], |[x], [sum]| [plus(sum, minus(x, from))]);
        let mean = first + distance / count;
        let middle = T::Vector::splat(mean);
        let [sum, squares] = sums([x], |[x], [sum, squares]| {
            let d = minus(x, middle);
            [plus(sum, d), d.mul_add(d, squares)]
        });
        if is_beyond(squares) {
            let numbers = x.iter().map(|x| (x.to_acc().to_f64(), 0.0));
            return Moments::of_large(numbers, x.len());
        }
        Moments::around(mean, sum, squares, count)
    }

    /// The combined moments of `count` values or rows, from their means and variances, computed in f64 because squares may
    /// overflow the accumulation type. The mean is infinite if a value is.
    #[cold]
    fn of_large(rows: impl Iterator<Item = (f64, f64)> + Clone, count: usize) -> Self {
        let count = count as f64;
        let mean = rows.clone().map(|(mean, _)| mean).sum::<f64>() / count;
        let squares = rows.map(|(own, variance)| variance + (own - mean) * (own - mean)).sum::<f64>();
        let rounded = A::from_f64(mean);
        let rest = if is_beyond(rounded) { A::ZERO } else { A::from_f64(mean - rounded.to_f64()) };
        Moments { mean: rounded, rest, variance: A::from_f64(squares / count) }
    }

    /// The combined moments of `n` rows of equal length (Chan et al.); `n` is at least 1.
    pub fn together(rows: impl Iterator<Item = Self> + Clone, n: usize) -> Self {
        let count = A::from_f64(n as f64);
        let first = rows.clone().next().map_or(A::ZERO, |row| row.mean);
        let mean = first + rows.clone().fold(A::ZERO, |sum, row| sum + (row.mean - first)) / count;
        let (sum, squares) = rows.clone().fold((A::ZERO, A::ZERO), |(sum, squares), row| {
            let d = (row.mean - mean) + row.rest;
            (sum + d, squares + (row.variance + d * d))
        });
        if is_beyond(squares) {
            let exact = |row: Self| (row.exact_mean(), row.variance.to_f64());
            return Moments::of_large(rows.map(exact), n);
        }
        Moments::around(mean, sum, squares, count)
    }

    /// The moments from the sums of `x - mean` and of `(x - mean)^2`, with the mean corrected by its error.
    #[inline(always)]
    pub fn around(mean: A, sum: A, squares: A, count: A) -> Self {
        let rest = sum / count;
        let variance = squares / count - rest * rest;
        Moments { mean, rest, variance: if variance < A::ZERO { A::ZERO } else { variance } }
    }

    /// The mean plus its rounding error.
    pub fn exact_mean(&self) -> f64 {
        self.mean.to_f64() + self.rest.to_f64()
    }

    /// The mean and scale by which a row is normalised.
    #[inline(always)]
    pub fn standard(&self, eps: A) -> Standard<A> {
        Standard { mean: self.mean, rest: self.rest, rstd: A::ONE / (self.variance + eps).sqrt() }
    }
}

/// Whether a value is infinite or NaN.
#[inline(always)]
fn is_beyond<A: Real>(number: A) -> bool {
    !(number < A::INFINITY && number > A::ZERO - A::INFINITY)
}

/// The mean and scale of a row: `x` becomes `((x - mean) - rest) * rstd`.
#[derive(Clone, Copy)]
pub struct Standard<A> {
    /// See [`Moments`].
    pub mean: A,
    /// See [`Moments`].
    pub rest: A,
    /// The reciprocal of the standard deviation.
    pub rstd: A,
}

impl<A: Real> Standard<A> {
    /// The normalised element.
    #[inline(always)]
    pub fn normalised(&self, x: A) -> A {
        ((x - self.mean) - self.rest) * self.rstd
    }
}

/// Argument `i` in the accumulation type, or `n` times `otherwise` if it is absent.
pub fn widened<T: Float>(
    call: &Call,
    i: usize,
    n: usize,
    otherwise: T::Acc,
) -> Result<Buffer<T::Acc>, Error> {
    if call.is_none(i)? {
        return Buffer::filled(n, otherwise);
    }
    let given: Contiguous<T> = call.contiguous(i)?;
    let mut widened = Buffer::zeroed(given.len())?;
    widened.iter_mut().zip(given.iter()).for_each(|(to, x)| *to = x.to_acc());
    Ok(widened)
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_sdk::author::Element;
    use keyway_sdk::half::{bf16, f16};

    fn check<T: Lanes>() {
        for n in [1, 2, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 127, 150, 1000] {
            let x: Vec<T> = (0..n).map(|i| T::from_f64((i * 37 % 101) as f64 / 8.0)).collect();
            let y: Vec<T> = (0..n).map(|i| T::from_f64((i * 11 % 64) as f64 - 30.0)).collect();
            // Lanes beyond the elements would add 3 each if they were not masked.
            let three = T::Vector::splat(T::Acc::from_f64(3.0));
            let made = sums([&x[..], &y[..]], |[x, y], [a, b]| [plus(a, plus(x, three)), x.mul_add(y, b)]);
            let pairs = || x.iter().zip(&y).map(|(x, y)| (x.to_acc().to_f64(), y.to_acc().to_f64()));
            let expected = [pairs().map(|(x, _)| x + 3.0).sum(), pairs().map(|(x, y)| x * y).sum::<f64>()];
            assert_eq!(made.map(|sum| sum.to_f64()), expected, "{} {n}", T::NAME);
        }
    }

    #[test]
    fn sums_are_of_all_elements_and_of_no_other_lanes() {
        check::<f32>();
        check::<f64>();
        check::<f16>();
        check::<bf16>();
    }

    #[test]
    fn a_number_that_is_none_is_in_the_moments_wherever_it_is() {
        for (n, at) in [(1, 0), (17, 16), (70, 0), (70, 33), (70, 69)] {
            let mut x = vec![f16::from_f32(1.0); n];
            x[at] = f16::NAN;
            let moments = Moments::of(&x);
            assert!(moments.mean.is_nan() && moments.variance.is_nan(), "{at} of {n}");
        }
    }

    #[test]
    fn rows_together_are_as_one_row() {
        let all: Vec<f64> = (0..3 * 70).map(|i| 1e6 + f64::from(i * i % 37)).collect();
        let rows: Vec<Moments<f64>> = all.chunks(70).map(Moments::of).collect();
        let (one, several) = (Moments::of(&all), Moments::together(rows.iter().copied(), 3));
        assert!(((one.mean + one.rest) - (several.mean + several.rest)).abs() < 1e-9);
        assert!((one.variance - several.variance).abs() < 1e-9 * one.variance, "{}", several.variance);
        // The squares and their sum overflow f32, the variance does not.
        let large = |size: f32| (0..60).map(|i| if i % 2 == 0 { size } else { -size }).collect::<Vec<f32>>();
        for size in [1e18, 1e19] {
            let row = Moments::of(&large(size));
            let all = Moments::together([row; 9].into_iter(), 9);
            for made in [row, all] {
                assert_eq!((made.mean, made.rest), (0.0, 0.0));
                assert!((made.variance / (size * size) - 1.0).abs() < 1e-6, "{}", made.variance);
            }
        }
        let equal = Moments::of(&[1234.567f32; 50]);
        let equal = Moments::together([equal; 3].into_iter(), 3);
        assert_eq!((equal.mean, equal.rest, equal.variance), (1234.567, 0.0, 0.0));
    }
}
