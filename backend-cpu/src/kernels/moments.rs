//! Mean and variance of rows that lie densely, which the normalisations share.

use super::buffer::Buffer;
use keyway_cpu_loops::vectors::halves;
use keyway_cpu_loops::{CallExt, Contiguous};
use keyway_sdk::author::{Call, Error, Float, Real};

const LANES: usize = 32;

// Loops over indices of arrays, which are unrolled into registers; iterators of iterators are not, at this size.

/// The sum of `f` by lanes.
#[inline(always)]
#[allow(clippy::needless_range_loop)]
pub fn total<X: Copy, A: Real>(x: &[X], f: impl Fn(X) -> A) -> A {
    let mut lanes = [A::ZERO; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for x in chunks {
        for k in 0..LANES {
            lanes[k] += f(x[k]);
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane += f(*x);
    }
    halves(&mut lanes, |a, b| a + b)
}

/// The two sums of `f` by lanes; `x` and `y` are of one length.
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

/// Mean and variance of some elements.
#[derive(Clone, Copy)]
pub struct Moments<A> {
    /// The mean, rounded.
    pub mean: A,
    /// What it is off by rounding: with large numbers, far more than the digits that a result has.
    pub rest: A,
    /// The mean square of the distances from the mean.
    pub variance: A,
}

impl<A: Real> Moments<A> {
    /// Those of a row that is not empty. The mean is that of the distances from the first element, so that equal numbers
    /// have no variance.
    #[inline(always)]
    pub fn of<T: Float<Acc = A>>(x: &[T]) -> Self {
        let (count, first) = (A::from_f64(x.len() as f64), x[0].to_acc());
        let mean = first + total(x, |x| x.to_acc() - first) / count;
        let (sum, squares) = totals(x, x, |x, _| {
            let d = x.to_acc() - mean;
            (d, d * d)
        });
        if is_beyond(squares) {
            let numbers = x.iter().map(|x| (x.to_acc().to_f64(), 0.0));
            return Moments::of_large(numbers, x.len());
        }
        Moments::around(mean, sum, squares, count)
    }

    /// Those of `count` numbers or rows, of which these are the means and variances, in f64: squares may be beyond a type that
    /// holds their mean, which is infinite where one of the numbers is.
    #[cold]
    fn of_large(rows: impl Iterator<Item = (f64, f64)> + Clone, count: usize) -> Self {
        let count = count as f64;
        let mean = rows.clone().map(|(mean, _)| mean).sum::<f64>() / count;
        let squares = rows.map(|(own, variance)| variance + (own - mean) * (own - mean)).sum::<f64>();
        let rounded = A::from_f64(mean);
        let rest = if is_beyond(rounded) { A::ZERO } else { A::from_f64(mean - rounded.to_f64()) };
        Moments { mean: rounded, rest, variance: A::from_f64(squares / count) }
    }

    /// Those of `n` rows of equal length together, which are not none.
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

    /// From the sums of the distances from `mean` and of their squares.
    #[inline(always)]
    fn around(mean: A, sum: A, squares: A, count: A) -> Self {
        let rest = sum / count;
        let variance = squares / count - rest * rest;
        Moments { mean, rest, variance: if variance < A::ZERO { A::ZERO } else { variance } }
    }

    /// The mean with all the digits that are known.
    pub fn exact_mean(&self) -> f64 {
        self.mean.to_f64() + self.rest.to_f64()
    }

    /// What a row is normalised by.
    #[inline(always)]
    pub fn standard(&self, eps: A) -> Standard<A> {
        Standard { mean: self.mean, rest: self.rest, rstd: A::ONE / (self.variance + eps).sqrt() }
    }
}

/// Whether a number is infinite or none.
#[inline(always)]
fn is_beyond<A: Real>(number: A) -> bool {
    !(number < A::INFINITY && number > A::ZERO - A::INFINITY)
}

/// What a row is normalised by: `x` becomes `((x - mean) - rest) * rstd`.
#[derive(Clone, Copy)]
pub struct Standard<A> {
    /// See [`Moments`].
    pub mean: A,
    /// See [`Moments`].
    pub rest: A,
    /// The reciprocal of the deviation.
    pub rstd: A,
}

impl<A: Real> Standard<A> {
    /// An element normalised.
    #[inline(always)]
    pub fn normalised(&self, x: A) -> A {
        ((x - self.mean) - self.rest) * self.rstd
    }
}

/// Argument `i` in the accumulation type, or `otherwise` `n` times if it was not given.
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

    #[test]
    fn rows_together_are_as_one_row() {
        let all: Vec<f64> = (0..3 * 70).map(|i| 1e6 + f64::from(i * i % 37)).collect();
        let rows: Vec<Moments<f64>> = all.chunks(70).map(Moments::of).collect();
        let (one, several) = (Moments::of(&all), Moments::together(rows.iter().copied(), 3));
        assert!(((one.mean + one.rest) - (several.mean + several.rest)).abs() < 1e-9);
        assert!((one.variance - several.variance).abs() < 1e-9 * one.variance, "{}", several.variance);
        // Squares, and their sum, are beyond f32, but not the variance.
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
