//! Columns of a matrix with dense rows, normalised in several vectors in parallel. Short rows are transposed to such
//! columns: otherwise the horizontal sums over lanes would take longer than the sums over elements.

// Loops over indices of arrays are unrolled into registers; iterators of iterators are not, at this size.
#![allow(clippy::needless_range_loop)]

use crate::kernels::buffer::Buffer;
use crate::kernels::moments::{Moments, first_of};
use keyway_cpu_loops::vectors::{
    Lanes as Elements, MOST, Vector, load_some, minus, plus, read_some, write_some,
};
use keyway_cpu_loops::{copy_dense, transpose};
use keyway_sdk::author::{Element, Error, Float, Real, Scratch};

/// The number of vectors normalised in parallel: with fewer the latency of additions dominates.
pub const SIDE: usize = 4;

pub type Number<T> = <T as Float>::Acc;
pub type Numbers<T> = <T as Elements>::Vector;

/// The mean and scale of the columns of a vector.
#[derive(Clone, Copy)]
struct Standards<V> {
    mean: V,
    /// See [`Moments`].
    rest: V,
    rstd: V,
}

impl<V: Vector> Standards<V> {
    #[inline(always)]
    fn normalised(&self, x: V) -> V {
        minus(minus(x, self.mean), self.rest).mul_add(self.rstd, V::splat(V::Number::ZERO))
    }
}

/// Applies a scalar function to each lane of `M` vectors, with `N` results.
#[inline(always)]
pub fn lanes<V: Vector, const M: usize, const N: usize>(
    vectors: [V; M],
    f: impl Fn([V::Number; M]) -> [V::Number; N],
) -> [V; N] {
    let mut from = [[V::Number::ZERO; MOST]; M];
    let mut to = [[V::Number::ZERO; MOST]; N];
    // SAFETY: no vector has more lanes than the copies.
    unsafe {
        for k in 0..M {
            vectors[k].store(from[k].as_mut_ptr());
        }
        for i in 0..V::LANES {
            let made = f(std::array::from_fn(|k| from[k][i]));
            (0..N).for_each(|k| to[k][i] = made[k]);
        }
        std::array::from_fn(|k| V::load(to[k].as_ptr()))
    }
}

/// Calls `body` with the first column of each group of vectors, the number of valid lanes of each vector, and whether the
/// group has [`SIDE`] vectors or one.
#[inline(always)]
pub fn groups<V: Vector>(columns: usize, mut body: impl FnMut(usize, usize, bool)) {
    let mut c = 0;
    while c < columns {
        let several = c + SIDE * V::LANES <= columns;
        if several {
            body(c, V::LANES, true);
            c += SIDE * V::LANES;
        } else {
            body(c, V::LANES.min(columns - c), false);
            c += V::LANES;
        }
    }
}

/// A matrix of `n` rows with row stride `step`, and the target of its normalised columns.
pub struct Matrix<T> {
    pub x: *const T,
    pub to: *mut T,
    pub n: usize,
    pub step: usize,
    pub columns: usize,
}

impl<T: Elements> Matrix<T> {
    /// Normalises the columns. Weight and bias have one value per row.
    ///
    /// # Safety
    /// The matrices must have the elements, and the written ones must be uniquely owned.
    pub unsafe fn normalise(&self, weight: &[Number<T>], bias: &[Number<T>], eps: Number<T>) {
        groups::<Numbers<T>>(self.columns, |c, n, several| {
            // SAFETY: as the caller guarantees.
            unsafe {
                if several {
                    self.group::<SIDE>(c, n, (weight, bias), eps);
                } else {
                    self.group::<1>(c, n, (weight, bias), eps);
                }
            }
        });
    }

    /// # Safety
    /// As for [`Matrix::normalise`].
    #[inline(always)]
    pub unsafe fn read(&self, from: *const T, i: usize, c: usize, some: usize) -> Numbers<T> {
        // SAFETY: the caller guarantees the elements.
        unsafe { read_some(from.add(i * self.step + c), 1, some) }
    }

    /// # Safety
    /// As for [`Matrix::normalise`].
    #[inline(always)]
    unsafe fn group<const G: usize>(
        &self,
        c: usize,
        some: usize,
        (weight, bias): (&[Number<T>], &[Number<T>]),
        eps: Number<T>,
    ) {
        let at: [usize; G] = std::array::from_fn(|k| c + k * Numbers::<T>::LANES);
        // SAFETY: as the caller guarantees.
        unsafe {
            let standards = self.standards(at, some, eps);
            for i in 0..self.n {
                let (w, b) = (Numbers::<T>::splat(weight[i]), Numbers::<T>::splat(bias[i]));
                for k in 0..G {
                    let made = standards[k].normalised(self.read(self.x, i, at[k], some)).mul_add(w, b);
                    write_some(self.to.add(i * self.step + at[k]), 1, some, made);
                }
            }
        }
    }

    /// The mean and scale of each column, computed as in [`Moments::of`].
    ///
    /// # Safety
    /// As for [`Matrix::normalise`].
    #[inline(always)]
    unsafe fn standards<const G: usize>(
        &self,
        at: [usize; G],
        some: usize,
        eps: Number<T>,
    ) -> [Standards<Numbers<T>>; G] {
        let zero = Numbers::<T>::splat(Number::<T>::ZERO);
        let count = Number::<T>::from_f64(self.n as f64);
        // SAFETY: as the caller guarantees.
        unsafe {
            let first: [Numbers<T>; G] = std::array::from_fn(|k| self.read(self.x, 0, at[k], some));
            let mut distance = [zero; G];
            for i in 1..self.n {
                for k in 0..G {
                    distance[k] = plus(distance[k], minus(self.read(self.x, i, at[k], some), first[k]));
                }
            }
            let mean: [Numbers<T>; G] = std::array::from_fn(|k| {
                lanes([first[k], distance[k]], |[first, distance]| [first + distance / count])[0]
            });
            let (mut sums, mut squares) = ([zero; G], [zero; G]);
            for i in 0..self.n {
                for k in 0..G {
                    let d = minus(self.read(self.x, i, at[k], some), mean[k]);
                    (sums[k], squares[k]) = (plus(sums[k], d), d.mul_add(d, squares[k]));
                }
            }
            std::array::from_fn(|k| {
                let [rest, rstd, finite] = lanes([sums[k], squares[k]], |[sum, squares]| {
                    let standard = Moments::around(Number::<T>::ZERO, sum, squares, count).standard(eps);
                    // 0 if finite, otherwise NaN.
                    [standard.rest, standard.rstd, squares * Number::<T>::ZERO]
                });
                let standards = Standards { mean: mean[k], rest, rstd };
                if is_zero(finite) { standards } else { self.large(standards, at[k], some, eps) }
            })
        }
    }

    /// The mean and scale of columns whose squares overflow, or contain NaN.
    ///
    /// # Safety
    /// As for [`Matrix::normalise`].
    #[cold]
    #[inline(never)]
    unsafe fn large(
        &self,
        standards: Standards<Numbers<T>>,
        at: usize,
        some: usize,
        eps: Number<T>,
    ) -> Standards<Numbers<T>> {
        let mut all = [standards.mean, standards.rest, standards.rstd].map(|vector| {
            let mut lanes = [Number::<T>::ZERO; MOST];
            // SAFETY: a vector has at most as many lanes as the array.
            unsafe { vector.store(lanes.as_mut_ptr()) };
            lanes
        });
        for lane in 0..some {
            // SAFETY: the caller guarantees the elements.
            let element = |i: usize| unsafe { *self.x.add(i * self.step + at + lane) };
            let column: Vec<T> = (0..self.n).map(element).collect();
            let standard = Moments::of(&column).standard(eps);
            for (all, one) in all.iter_mut().zip([standard.mean, standard.rest, standard.rstd]) {
                all[lane] = one;
            }
        }
        // SAFETY: a vector has at most as many lanes as the array.
        let [mean, rest, rstd] = all.map(|lanes| unsafe { Numbers::<T>::load(lanes.as_ptr()) });
        Standards { mean, rest, rstd }
    }
}

/// Whether each lane is 0.
#[inline(always)]
fn is_zero<V: Vector>(vector: V) -> bool {
    let mut lanes = [V::Number::ZERO; MOST];
    // SAFETY: a vector has at most as many lanes as the array.
    unsafe { vector.store(lanes.as_mut_ptr()) };
    lanes.iter().fold(true, |all, x| all & (*x == V::Number::ZERO))
}

/// The maximum number of elements of a short row, in backward and in forward passes.
pub const SHORT: usize = 64;
pub const SHORTER: usize = 32;
/// Short rows that are transposed at a time.
pub const TRANSPOSED: usize = 32;

/// Scratch memory for a block of short rows. They are copied before they are transposed, so that reads and writes of the
/// tensor are sequential.
pub struct Block<T>([T; SHORT * TRANSPOSED]);

impl<T: Elements> Block<T> {
    pub fn new() -> Self {
        Block([T::default(); SHORT * TRANSPOSED])
    }

    /// The address of the columns.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.0.as_mut_ptr()
    }

    /// Fills the block with `count` rows of `n` elements as columns.
    ///
    /// # Safety
    /// There must be `count` rows, at most [`TRANSPOSED`], of at most [`SHORT`] elements.
    pub unsafe fn read(&mut self, rows: &mut Block<T>, from: *const T, n: usize, count: usize) {
        // SAFETY: the caller guarantees the rows; both blocks have capacity for them.
        unsafe {
            copy_dense(rows.as_mut_ptr(), from, n * count);
            transpose(self.as_mut_ptr(), count, rows.0.as_ptr(), n, count, n);
        }
    }

    /// Writes the columns as `count` rows of `n` elements.
    ///
    /// # Safety
    /// As for [`Block::read`]; the rows must be uniquely owned.
    pub unsafe fn write(&self, rows: &mut Block<T>, to: *mut T, n: usize, count: usize) {
        // SAFETY: as in `read`.
        unsafe {
            transpose(rows.as_mut_ptr(), n, self.0.as_ptr(), count, n, count);
            copy_dense(to, rows.0.as_ptr(), n * count);
        }
    }
}

/// The contributions of columns to the gradients of weight and bias: one vector for each row of a matrix.
pub struct Contributions<T: Elements>(Scratch<T::Acc>);

impl<T: Elements> Contributions<T> {
    /// Allocates the contributions of `parts` parts to `n` values.
    pub fn new(n: usize, parts: usize) -> Result<Self, Error> {
        Ok(Contributions(Scratch::zeroed(n * parts * Numbers::<T>::LANES)?))
    }

    /// The address of a part.
    pub fn as_mut_ptr(&mut self) -> *mut T::Acc {
        self.0.as_mut_ptr()
    }

    /// The number of lanes of one part of `n` values.
    pub fn len(n: usize) -> usize {
        n * Numbers::<T>::LANES
    }

    /// The sums of all parts.
    pub fn sums(&self, n: usize) -> Result<Buffer<T::Acc>, Error> {
        let lanes = Numbers::<T>::LANES;
        let mut all = vec![T::Acc::ZERO; n * lanes];
        for part in self.0.chunks_exact((n * lanes).max(1)) {
            all.iter_mut().zip(part).for_each(|(sum, part)| *sum += *part);
        }
        let mut sums = Buffer::zeroed(n)?;
        for (sum, lanes) in sums.iter_mut().zip(all.chunks_exact_mut(lanes)) {
            *sum = keyway_cpu_loops::vectors::halves(lanes, |a, b| a + b);
        }
        Ok(sums)
    }
}

impl<T: Elements> Matrix<T> {
    /// Writes the gradients of the columns, and adds their contributions to the gradients of weight and bias.
    ///
    /// # Safety
    /// The matrices must have the elements, and the written ones must be uniquely owned; `sums` must be a part with as many
    /// rows.
    pub unsafe fn gradients(
        &self,
        grad: *const T,
        weight: &[Number<T>],
        eps: Number<T>,
        sums: *mut Number<T>,
    ) {
        groups::<Numbers<T>>(self.columns, |c, n, several| {
            // SAFETY: as the caller guarantees.
            unsafe {
                if several {
                    self.gradients_of::<SIDE>(grad, c, n, (weight, eps), sums);
                } else {
                    self.gradients_of::<1>(grad, c, n, (weight, eps), sums);
                }
            }
        });
    }

    /// # Safety
    /// As for [`Matrix::gradients`].
    #[inline(always)]
    unsafe fn gradients_of<const G: usize>(
        &self,
        grad: *const T,
        c: usize,
        some: usize,
        (weight, eps): (&[Number<T>], Number<T>),
        sums: *mut Number<T>,
    ) {
        let width = Numbers::<T>::LANES;
        let at: [usize; G] = std::array::from_fn(|k| c + k * width);
        let zero = Numbers::<T>::splat(Number::<T>::ZERO);
        let count = Number::<T>::from_f64(self.n as f64);
        let mean = |sum: Numbers<T>| lanes([sum], |[sum]| [sum / count])[0];
        // SAFETY: as the caller guarantees.
        unsafe {
            let standards = self.standards(at, some, eps);
            let mut offset = [zero; G];
            for i in 0..self.n {
                let w = Numbers::<T>::splat(weight[i]);
                for k in 0..G {
                    offset[k] = self.read(grad, i, at[k], some).mul_add(w, offset[k]);
                }
            }
            let offset = offset.map(mean);
            let (mut rest, mut along) = ([zero; G], [zero; G]);
            for i in 0..self.n {
                let w = Numbers::<T>::splat(weight[i]);
                for k in 0..G {
                    let g = self.read(grad, i, at[k], some).mul_add(w, zero);
                    let d = minus(g, offset[k]);
                    let x = standards[k].normalised(self.read(self.x, i, at[k], some));
                    (rest[k], along[k]) = (plus(rest[k], d), d.mul_add(x, along[k]));
                }
            }
            let (rest, along) = (rest.map(mean), along.map(mean));
            for i in 0..self.n {
                let w = Numbers::<T>::splat(weight[i]);
                let (to_weight, to_bias) = (sums.add(i * width), sums.add((self.n + i) * width));
                let (mut of_weight, mut of_bias) = (load_some(to_weight, width), load_some(to_bias, width));
                for k in 0..G {
                    let g = self.read(grad, i, at[k], some);
                    let x = standards[k].normalised(self.read(self.x, i, at[k], some));
                    let d = minus(minus(g.mul_add(w, zero), offset[k]), rest[k]);
                    let made = minus(d, x.mul_add(along[k], zero)).mul_add(standards[k].rstd, zero);
                    write_some(self.to.add(i * self.step + at[k]), 1, some, made);
                    let product = g.mul_add(x, zero);
                    // Lanes beyond the columns are NaN if `eps` is 0.
                    let product = if some == width { product } else { first_of(product, some) };
                    (of_weight, of_bias) = (plus(of_weight, product), plus(of_bias, g));
                }
                of_weight.store(to_weight);
                of_bias.store(to_bias);
            }
        }
    }
}
