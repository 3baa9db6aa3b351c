//! Loop nests over several operands, for kernels whose operands differ in more than their strides.

use keyway_sdk::author::{Error, parallel_for};
use std::cmp::Reverse;

/// The number of elements per work item.
const GRAIN: usize = 1 << 15;
/// The minimum length of a part of a row: a cache line of f32.
const SHORTEST: usize = 16;

/// One loop: the number of iterations, and the stride of each operand in elements.
pub type Dim<const N: usize> = (usize, [isize; N]);

/// The function applied to a row: the operands' offsets, the length, and the operands' strides.
type Body<'a, const N: usize> = &'a (dyn Fn([isize; N], usize, [isize; N]) + Sync);

/// A loop nest; the innermost loop is passed to the body as a row.
pub struct Nest<const N: usize> {
    outer: Vec<Dim<N>>,
    inner: Dim<N>,
    empty: bool,
}

/// The loops over `sizes`, with these strides.
pub fn dims<const N: usize>(sizes: &[usize], strides: [&[isize]; N]) -> Vec<Dim<N>> {
    sizes.iter().enumerate().map(|(d, &size)| (size, strides.map(|s| s[d]))).collect()
}

impl<const N: usize> Nest<N> {
    /// The loops in the memory order of operand 0, with adjacent loops merged.
    pub fn sorted(mut dims: Vec<Dim<N>>) -> Nest<N> {
        dims.sort_by_key(|d| Reverse(d.1[0].unsigned_abs()));
        Nest::in_order(dims)
    }

    /// The loops in the given order, with adjacent loops merged.
    pub fn in_order(dims: Vec<Dim<N>>) -> Nest<N> {
        let empty = dims.iter().any(|d| d.0 == 0);
        let mut merged: Vec<Dim<N>> = Vec::with_capacity(dims.len());
        for dim in dims.into_iter().filter(|d| d.0 != 1) {
            match merged.last_mut() {
                Some(last) if (0..N).all(|k| last.1[k] == dim.1[k] * dim.0 as isize) => {
                    *last = (last.0 * dim.0, dim.1);
                }
                _ => merged.push(dim),
            }
        }
        let inner = merged.pop().unwrap_or((1, [0; N]));
        Nest { outer: merged, inner, empty }
    }

    /// The loops, outermost first.
    pub fn into_dims(self) -> Vec<Dim<N>> {
        let mut dims = self.outer;
        dims.push(self.inner);
        dims
    }

    /// The number of iterations of all loops.
    pub fn len(&self) -> usize {
        if self.empty { 0 } else { self.outer.iter().map(|d| d.0).product::<usize>() * self.inner.0 }
    }

    /// Calls `body` with each row, or part of a long row: the operands' offsets, the length and the strides. Rows run in
    /// parallel; `weight` is the relative cost of one element. The parts depend on sizes alone.
    pub fn for_each_row(
        &self,
        weight: usize,
        body: impl Fn([isize; N], usize, [isize; N]) + Sync,
    ) -> Result<(), Error> {
        self.rows(weight, SHORTEST, &body)
    }

    /// As [`Nest::for_each_row`], in parts of at least `shortest` elements.
    pub fn for_each_row_of(
        &self,
        weight: usize,
        shortest: usize,
        body: impl Fn([isize; N], usize, [isize; N]) + Sync,
    ) -> Result<(), Error> {
        self.rows(weight, shortest, &body)
    }

    /// The innermost loop.
    pub fn inner(&self) -> Dim<N> {
        self.inner
    }

    /// The nest without the innermost loop.
    pub fn around(&self) -> Nest<N> {
        let mut outer = self.outer.clone();
        let inner = outer.pop().unwrap_or((1, [0; N]));
        Nest { outer, inner, empty: self.empty }
    }

    // Not generic, so that hundreds of kernels share the iterator.
    fn rows(&self, weight: usize, shortest: usize, body: Body<'_, N>) -> Result<(), Error> {
        if self.empty {
            return Ok(());
        }
        let (len, steps) = self.inner;
        let part = (GRAIN / weight.max(1)).max(shortest).min(len);
        let parts = len.div_ceil(part);
        let rows: usize = self.outer.iter().map(|d| d.0).product();
        let grain = (GRAIN / part.saturating_mul(weight.max(1))).max(1);
        parallel_for(rows * parts, grain, |units| {
            let mut outer = StridedIter::at(&self.outer, units.start / parts);
            let mut p = units.start % parts;
            for _ in units {
                let begin = p * part;
                let offsets = std::array::from_fn(|k| outer.offsets[k] + begin as isize * steps[k]);
                body(offsets, part.min(len - begin), steps);
                p += 1;
                if p == parts {
                    p = 0;
                    outer.step();
                }
            }
        })
    }

    /// As [`Nest::for_each_row`], with whole rows in sequence on this thread.
    pub fn for_each_row_here(&self, mut body: impl FnMut([isize; N], usize, [isize; N])) {
        if self.empty {
            return;
        }
        let rows: usize = self.outer.iter().map(|d| d.0).product();
        let mut outer = StridedIter::at(&self.outer, 0);
        for _ in 0..rows {
            body(outer.offsets, self.inner.0, self.inner.1);
            outer.step();
        }
    }
}

impl Nest<2> {
    /// The loops of a transposition, if operand 0 is dense along the innermost loop and operand 1 along another.
    pub fn across(&self) -> Option<Across> {
        let (_, [to, from]) = self.inner;
        let transposed = |d: &Dim<2>| d.1[1] == 1 && d.1[0] > 0;
        let at = if to == 1 && from > 1 && !self.empty {
            self.outer.iter().position(transposed)?
        } else {
            return None;
        };
        let mut outer = self.outer.clone();
        let rows = outer.remove(at);
        Some(Across { outer, rows, columns: self.inner })
    }
}

/// Loops in which operand 0 is dense along the columns, and operand 1 along the rows.
pub struct Across {
    outer: Vec<Dim<2>>,
    rows: Dim<2>,
    columns: Dim<2>,
}

impl Across {
    /// Calls `body` with strips of at most `height` rows: the operands' offsets, the rows and columns, the row stride of
    /// operand 0, and the column stride of operand 1.
    pub fn for_each_strip(
        &self,
        height: usize,
        body: impl Fn([isize; 2], (usize, usize), (usize, usize)) + Sync,
    ) -> Result<(), Error> {
        let ((rows, [to, _]), (columns, [_, from])) = (self.rows, self.columns);
        let strips = rows.div_ceil(height);
        let all: usize = self.outer.iter().map(|d| d.0).product();
        let grain = (GRAIN / (height * columns)).max(1);
        parallel_for(all * strips, grain, |units| {
            for unit in units {
                let outer = StridedIter::at(&self.outer, unit / strips);
                let row = unit % strips * height;
                let at = [outer.offsets[0] + row as isize * to, outer.offsets[1] + row as isize];
                body(at, (height.min(rows - row), columns), (to as usize, from as usize));
            }
        })
    }
}

/// A strided iterator over the outer loops, which yields the offset of each operand.
struct StridedIter<'a, const N: usize> {
    dims: &'a [Dim<N>],
    index: Vec<usize>,
    offsets: [isize; N],
}

impl<'a, const N: usize> StridedIter<'a, N> {
    fn at(dims: &'a [Dim<N>], row: usize) -> StridedIter<'a, N> {
        let mut index = vec![0; dims.len()];
        let mut offsets = [0; N];
        let mut rest = row;
        for (i, (size, strides)) in index.iter_mut().zip(dims).rev() {
            *i = rest % size;
            rest /= size;
            (0..N).for_each(|k| offsets[k] += *i as isize * strides[k]);
        }
        StridedIter { dims, index, offsets }
    }

    #[inline]
    fn step(&mut self) {
        for (i, (size, strides)) in self.index.iter_mut().zip(self.dims).rev() {
            *i += 1;
            (0..N).for_each(|k| self.offsets[k] += strides[k]);
            if *i < *size {
                return;
            }
            *i = 0;
            (0..N).for_each(|k| self.offsets[k] -= strides[k] * *size as isize);
        }
    }
}
