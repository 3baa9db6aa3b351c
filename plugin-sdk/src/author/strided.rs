//! Iteration over strided tensors by their sizes and strides alone.
//!
//! For kernels of a device whose memory the host cannot read: this module accesses no tensor memory. [`Strided`] collapses
//! up to `N` operands of one shape to the fewest dimensions that describe them, and yields the offsets of their elements,
//! or of runs of elements along the innermost dimension:
//!
//! ```
//! use keyway_sdk::author::strided::Strided;
//!
//! // A 2 x 3 output in row-major order, and an input of the same shape that is transposed.
//! let both = Strided::new(&[2, 3], [&[3, 1], &[1, 2]])?;
//! let offsets: Vec<[usize; 2]> = both.offsets().collect();
//! assert_eq!(offsets, [[0, 0], [1, 2], [2, 4], [3, 1], [4, 3], [5, 5]]);
//!
//! // Two dense operands are one dimension, so one run.
//! let dense = Strided::new(&[2, 3], [&[3, 1], &[3, 1]])?;
//! assert!(dense.is_contiguous());
//! assert_eq!(dense.runs().map(|run| (run.offsets, run.len)).collect::<Vec<_>>(), [([0, 0], 6)]);
//! # Ok::<(), keyway_sdk::Error>(())
//! ```
//!
//! All offsets, sizes and strides are in elements. A kernel that computes offsets on the device itself passes [`Strided::dims`]
//! to it. Elements are visited in the memory order of the first operand, so the output is passed first. If the linear index of
//! an element matters, as for random numbers, [`row_major`] strides are passed first: their offsets are the linear indices.
//! Reductions have [`Reduction`].
//!
//! Sizes and strides come from the host, which may be wrong: [`Strided::new`] checks them once, so that later offsets
//! cannot overflow. [`Dims`] and [`Odometer`] are the lower level on which host loops build (`keyway-cpu-loops`).

use super::error::Error;
pub use super::reduction::Reduction;
use std::ops::{Deref, DerefMut};

/// The row-major strides of a dense tensor.
///
/// [`Error::InvalidArgument`] for negative sizes, and for more elements than `isize::MAX`.
pub fn row_major(sizes: &[i64]) -> Result<Vec<i64>, Error> {
    let mut strides = vec![0; sizes.len()];
    let mut next: i64 = 1;
    for (stride, &size) in strides.iter_mut().zip(sizes).rev() {
        *stride = next;
        let all = if size < 0 { None } else { next.checked_mul(size.max(1)) };
        next = all.filter(|all| isize::try_from(*all).is_ok()).ok_or_else(|| {
            wrong("sizes", format!("numbers of at least 0, of at most {} elements", isize::MAX), sizes)
        })?;
    }
    Ok(strides)
}

/// A dimension: its size, and each operand's stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim<const N: usize> {
    /// The size.
    pub size: usize,
    /// The strides in elements; 0 if an operand is broadcast.
    pub strides: [usize; N],
}

impl<const N: usize> Dim<N> {
    const EMPTY: Self = Dim { size: 0, strides: [0; N] };
}

/// Dimensions, outermost first; without heap for up to 8.
#[derive(Clone, Debug)]
pub struct Dims<const N: usize> {
    inline: [Dim<N>; 8],
    heap: Vec<Dim<N>>,
    len: usize,
}

impl<const N: usize> Dims<N> {
    fn new(capacity: usize) -> Self {
        let heap = if capacity > 8 { vec![Dim::EMPTY; capacity] } else { Vec::new() };
        Dims { inline: [Dim::EMPTY; 8], heap, len: 0 }
    }

    /// A single dimension.
    pub fn one(size: usize, strides: [usize; N]) -> Self {
        let mut dims = Dims::new(1);
        dims.push(Dim { size, strides });
        dims
    }

    fn push(&mut self, dim: Dim<N>) {
        self.len += 1;
        let last = self.len - 1;
        self[last] = dim;
    }

    /// Removes and returns the innermost dimension.
    pub fn pop(&mut self) -> Option<Dim<N>> {
        let last = self.last().copied();
        self.len = self.len.saturating_sub(1);
        last
    }

    /// Dimensions sorted by the strides of the first operand (largest first, then of the next one), without those of size
    /// 1, and merged with their neighbours if every operand allows it. Never empty. An operand without strides has one
    /// element for all indices; any other has one stride per size. The arguments are not checked, and products wrap; no
    /// size may be 0: see [`Strided::new`].
    pub fn collapse(sizes: &[i64], strides: &[Option<&[i64]>; N]) -> Dims<N> {
        let mut sorted = Dims::new(sizes.len());
        for (d, &size) in sizes.iter().enumerate() {
            if size != 1 {
                let strides = strides.map(|s| s.map_or(0, |s| s[d] as usize));
                sorted.push(Dim { size: size as usize, strides });
            }
        }
        // An insertion sort: stable, and fast for few dimensions that are mostly in order.
        for i in 1..sorted.len() {
            let mut j = i;
            while j > 0 && sorted[j - 1].strides < sorted[j].strides {
                sorted.swap(j - 1, j);
                j -= 1;
            }
        }
        let mut merged = 0;
        for i in 1..sorted.len() {
            let (outer, inner) = (sorted[merged], sorted[i]);
            if (0..N).all(|k| outer.strides[k] == inner.strides[k].wrapping_mul(inner.size)) {
                sorted[merged] = Dim { size: outer.size.wrapping_mul(inner.size), strides: inner.strides };
            } else {
                merged += 1;
                sorted[merged] = inner;
            }
        }
        if sorted.is_empty() {
            return Dims::one(1, [1; N]);
        }
        sorted.len = merged + 1;
        sorted
    }
}

impl<const N: usize> Deref for Dims<N> {
    type Target = [Dim<N>];
    fn deref(&self) -> &[Dim<N>] {
        if self.heap.is_empty() { &self.inline[..self.len] } else { &self.heap[..self.len] }
    }
}

impl<const N: usize> DerefMut for Dims<N> {
    fn deref_mut(&mut self) -> &mut [Dim<N>] {
        if self.heap.is_empty() { &mut self.inline[..self.len] } else { &mut self.heap[..self.len] }
    }
}

/// A multi-dimensional index, with the offset of each operand.
#[derive(Clone, Debug)]
pub struct Odometer<const N: usize> {
    index: Coordinates,
    offsets: [usize; N],
}

impl<const N: usize> Odometer<N> {
    /// The index at `position`, counted with the last dimension fastest, so that a part of the work can start anywhere.
    pub fn new(dims: &[Dim<N>], mut position: usize) -> Self {
        let mut odometer = Odometer { index: Coordinates::new(dims.len()), offsets: [0; N] };
        if position > 0 {
            for (i, dim) in odometer.index.iter_mut().zip(dims).rev() {
                let size = dim.size.max(1);
                *i = position % size;
                position /= size;
                for (o, s) in odometer.offsets.iter_mut().zip(dim.strides) {
                    *o = o.wrapping_add(i.wrapping_mul(s));
                }
            }
        }
        odometer
    }

    /// The offset of each operand.
    #[inline(always)]
    pub fn offsets(&self) -> [usize; N] {
        self.offsets
    }

    /// Advances to the next index; after the last one, to the first.
    #[inline]
    pub fn step(&mut self, dims: &[Dim<N>]) {
        for (i, dim) in self.index.iter_mut().zip(dims).rev() {
            *i += 1;
            if *i < dim.size {
                for (o, s) in self.offsets.iter_mut().zip(dim.strides) {
                    *o = o.wrapping_add(s);
                }
                return;
            }
            *i = 0;
            for (o, s) in self.offsets.iter_mut().zip(dim.strides) {
                *o = o.wrapping_sub(s.wrapping_mul(dim.size.wrapping_sub(1)));
            }
        }
    }
}

/// An index, without heap for up to 8 dimensions.
#[derive(Clone, Debug)]
pub(crate) struct Coordinates {
    inline: [usize; 8],
    heap: Vec<usize>,
    ndim: usize,
}

impl Coordinates {
    pub(crate) fn new(ndim: usize) -> Self {
        Coordinates { inline: [0; 8], heap: if ndim > 8 { vec![0; ndim] } else { Vec::new() }, ndim }
    }

    /// The offset of the present index; steps to the next in row-major order.
    pub(crate) fn step(&mut self, sizes: &[i64], strides: &[i64]) -> usize {
        let at = self.iter().zip(strides).map(|(i, s)| i * *s as usize).sum();
        for (i, &size) in self.iter_mut().zip(sizes).rev() {
            *i += 1;
            if (*i as i64) < size {
                break;
            }
            *i = 0;
        }
        at
    }
}

impl Deref for Coordinates {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        if self.ndim > 8 { &self.heap } else { &self.inline[..self.ndim] }
    }
}

impl DerefMut for Coordinates {
    fn deref_mut(&mut self) -> &mut [usize] {
        if self.ndim > 8 { &mut self.heap } else { &mut self.inline[..self.ndim] }
    }
}

/// `N` operands of one shape, in the fewest dimensions that describe them.
#[derive(Clone, Debug)]
pub struct Strided<const N: usize> {
    dims: Dims<N>,
    numel: usize,
}

/// `len` elements with constant strides ([`Strided::steps`]), starting at `offsets`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run<const N: usize> {
    /// The offset of each operand's first element.
    pub offsets: [usize; N],
    /// The number of elements.
    pub len: usize,
}

impl<const N: usize> Strided<N> {
    /// Creates operands of these sizes, each with its strides; a stride of 0 broadcasts.
    ///
    /// [`Error::InvalidArgument`] if an operand's number of strides differs from the number of sizes, if a size or stride
    /// is negative, or if an offset does not fit an `isize`.
    pub fn new(sizes: &[i64], strides: [&[i64]; N]) -> Result<Self, Error> {
        if let Some(k) = strides.iter().position(|s| s.len() != sizes.len()) {
            return Err(wrong("strides", format!("{} of them, one for each size", sizes.len()), strides[k]));
        }
        if sizes.iter().any(|n| *n < 0) {
            return Err(wrong("sizes", "numbers of at least 0".into(), sizes));
        }
        if let Some(negative) = strides.iter().find(|s| s.iter().any(|v| *v < 0)) {
            return Err(wrong("strides", "numbers of at least 0".into(), negative));
        }
        if sizes.contains(&0) {
            return Ok(Strided { dims: Dims::one(0, [0; N]), numel: 0 });
        }
        let numel = sizes.iter().try_fold(1isize, |n, size| n.checked_mul(isize::try_from(*size).ok()?));
        let numel = numel.ok_or_else(|| wrong("sizes", format!("at most {} elements", isize::MAX), sizes))?;
        for own in strides {
            let last =
                sizes.iter().zip(own).try_fold(0i64, |at, (n, s)| at.checked_add((n - 1).checked_mul(*s)?));
            if last.is_none_or(|last| isize::try_from(last).is_err()) {
                return Err(wrong(
                    "strides",
                    format!("offsets of at most {} over {sizes:?}", isize::MAX),
                    own,
                ));
            }
        }
        Ok(Strided { dims: Dims::collapse(sizes, &strides.map(Some)), numel: numel as usize })
    }

    /// The number of elements of the shape.
    pub fn numel(&self) -> usize {
        self.numel
    }

    /// The dimensions, outermost first, at least one, from which a device can compute offsets itself.
    pub fn dims(&self) -> &[Dim<N>] {
        &self.dims
    }

    /// Whether all operands are dense with equal strides (in any memory format), so that the elements are at offsets
    /// `0..numel` of each.
    pub fn is_contiguous(&self) -> bool {
        match *self.dims() {
            [only] => only.size <= 1 || only.strides == [1; N],
            _ => false,
        }
    }

    /// The offset of each operand's element, index after index.
    pub fn offsets(&self) -> Offsets<'_, N> {
        Offsets { dims: &self.dims, odometer: Odometer::new(&self.dims, 0), left: self.numel }
    }

    /// The elements in runs along the innermost dimension.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = Run<N>> + use<'_, N> {
        let (len, outer) = match self.dims().split_last() {
            Some((inner, outer)) => (inner.size, outer),
            None => (0, self.dims()),
        };
        let left = self.numel.checked_div(len).unwrap_or(0);
        let starts = Offsets { dims: outer, odometer: Odometer::new(outer, 0), left };
        starts.map(move |offsets| Run { offsets, len })
    }

    /// The stride of each operand along a run: 1 if contiguous, 0 if one element is broadcast.
    pub fn steps(&self) -> [usize; N] {
        self.dims().last().map_or([0; N], |inner| inner.strides)
    }
}

/// The offsets of the elements of [`Strided`] operands.
#[derive(Clone, Debug)]
pub struct Offsets<'a, const N: usize> {
    dims: &'a [Dim<N>],
    odometer: Odometer<N>,
    left: usize,
}

impl<const N: usize> Iterator for Offsets<'_, N> {
    type Item = [usize; N];

    #[inline]
    fn next(&mut self) -> Option<[usize; N]> {
        self.left = self.left.checked_sub(1)?;
        let at = self.odometer.offsets();
        self.odometer.step(self.dims);
        Some(at)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<const N: usize> ExactSizeIterator for Offsets<'_, N> {}

#[cold]
fn wrong(argument: &'static str, expected: String, got: &[i64]) -> Error {
    Error::InvalidArgument { argument, expected, got: format!("{got:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The offsets at every index of a shape, by the definition.
    fn naive(sizes: &[i64], strides: &[Vec<i64>; 3]) -> Vec<[usize; 3]> {
        let mut all = vec![[0usize; 3]];
        for (d, &size) in sizes.iter().enumerate() {
            let stride = |k: usize| strides[k][d] as usize;
            let at = |o: [usize; 3], i: usize| [0, 1, 2].map(|k| o[k] + i * stride(k));
            all = all.into_iter().flat_map(|o| (0..size as usize).map(move |i| at(o, i))).collect();
        }
        all
    }

    fn of(strides: &[Vec<i64>; 3]) -> [&[i64]; 3] {
        strides.each_ref().map(Vec::as_slice)
    }

    fn sorted(mut offsets: Vec<[usize; 3]>) -> Vec<[usize; 3]> {
        offsets.sort_unstable();
        offsets
    }

    /// Strides of dense tensors in any order of the dimensions, of broadcast ones, and arbitrary ones.
    fn operand(sizes: Vec<i64>) -> BoxedStrategy<Vec<i64>> {
        let ndim = sizes.len();
        let dense = (Just((0..ndim).collect::<Vec<_>>()).prop_shuffle(), 0..64u32).prop_map(
            move |(order, expand)| {
                let (mut strides, mut next) = (vec![0; ndim], 1);
                for d in order {
                    if expand >> d & 1 == 0 {
                        strides[d] = next;
                        next *= sizes[d].max(1);
                    }
                }
                strides
            },
        );
        prop_oneof![2 => dense, 1 => prop::collection::vec(0..9i64, ndim)].boxed()
    }

    fn cases() -> impl Strategy<Value = (Vec<i64>, [Vec<i64>; 3])> {
        prop::collection::vec(prop_oneof![4 => 1..5i64, 1 => Just(0i64)], 0..6).prop_flat_map(|sizes| {
            let operands = [0, 1, 2].map(|_| operand(sizes.clone()));
            (Just(sizes), operands)
        })
    }

    #[test]
    fn row_major_offsets_are_the_numbers_of_the_elements() {
        assert_eq!(row_major(&[2, 3, 4]).unwrap(), [12, 4, 1]);
        assert_eq!(row_major(&[2, 0, 4]).unwrap(), [4, 4, 1]);
        assert!(row_major(&[]).unwrap().is_empty());
        assert!(row_major(&[2, -1]).is_err() && row_major(&[i64::MAX, 3]).is_err());
        let numbered = Strided::new(&[2, 3], [&row_major(&[2, 3]).unwrap(), &[1, 2]]).unwrap();
        let visited: Vec<[usize; 2]> = numbered.offsets().collect();
        assert_eq!(visited, [[0, 0], [1, 2], [2, 4], [3, 1], [4, 3], [5, 5]]);
    }

    proptest! {
        #[test]
        fn each_index_is_visited_once((sizes, strides) in cases()) {
            let made = Strided::new(&sizes, of(&strides)).unwrap();
            let expected = sorted(naive(&sizes, &strides));
            prop_assert_eq!(made.numel(), expected.len());
            prop_assert_eq!(made.offsets().len(), expected.len());
            prop_assert_eq!(sorted(made.offsets().collect()), expected.clone());
            let steps = made.steps();
            let runs = made.runs().flat_map(|run| {
                (0..run.len).map(move |i| [0, 1, 2].map(|k| run.offsets[k] + i * steps[k]))
            });
            prop_assert_eq!(sorted(runs.collect()), expected.clone());
            prop_assert!(made.dims().len() <= sizes.len().max(1));
            if made.is_contiguous() {
                prop_assert_eq!((0..made.numel()).map(|i| [i; 3]).collect::<Vec<_>>(), expected);
            }
        }

        #[test]
        fn the_order_is_that_of_the_first_operand_and_an_odometer_begins_anywhere((sizes, strides) in cases()) {
            let made = Strided::new(&sizes, of(&strides)).unwrap();
            let all: Vec<[usize; 3]> = made.offsets().collect();
            if is_dense(&sizes, &strides[0]) {
                prop_assert!(all.iter().map(|at| at[0]).is_sorted());
            }
            for (position, at) in all.iter().enumerate() {
                prop_assert_eq!(&Odometer::new(made.dims(), position).offsets(), at);
            }
        }

        #[test]
        fn any_numbers_give_an_answer(
            sizes in prop::collection::vec(any::<i64>(), 0..4),
            strides in prop::collection::vec(any::<i64>(), 0..4),
        ) {
            if let Ok(made) = Strided::new(&sizes, [&strides]) {
                let first: Vec<_> = made.offsets().take(3).collect();
                prop_assert_eq!(first.len(), made.numel().min(3));
            }
        }
    }

    /// Whether the elements are at `0..numel`.
    fn is_dense(sizes: &[i64], strides: &[i64]) -> bool {
        let own = [0, 1, 2].map(|_| strides.to_vec());
        sorted(naive(sizes, &own)).into_iter().enumerate().all(|(i, at)| at == [i; 3])
    }

    #[test]
    fn dense_operands_of_any_memory_format_are_one_run() {
        // Channels last: sizes in logical order, the second dimension at unit stride.
        let channels_last: &[i64] = &[60, 1, 15, 3];
        let made = Strided::new(&[2, 3, 4, 5], [channels_last, channels_last]).unwrap();
        assert!(made.is_contiguous());
        assert_eq!(made.runs().collect::<Vec<_>>(), [Run { offsets: [0, 0], len: 120 }]);
        let broadcast = Strided::new(&[2, 3], [&[3, 1], &[0, 1]]).unwrap();
        assert!(!broadcast.is_contiguous());
        assert_eq!(broadcast.steps(), [1, 1]);
        assert_eq!(broadcast.runs().map(|run| run.offsets).collect::<Vec<_>>(), [[0, 0], [3, 0]]);
        assert_eq!(Strided::new(&[], [&[]]).unwrap().offsets().collect::<Vec<_>>(), [[0]]);
        assert_eq!(Strided::new(&[0, 3], [&[3, 1]]).unwrap().runs().len(), 0);
        assert_eq!(Strided::<0>::new(&[2, 3], []).unwrap().offsets().count(), 6);
    }

    #[test]
    fn rank_above_eight_is_served() {
        let strides: Vec<i64> = (0..12).map(|d| 3i64.pow(11 - d)).collect();
        let made = Strided::new(&[2; 12], [&strides]).unwrap();
        assert_eq!(made.dims().len(), 12);
        let offsets: Vec<[usize; 1]> = made.offsets().collect();
        assert!(offsets.len() == 4096 && offsets.is_sorted());
        assert_eq!(offsets[4095], [(3usize.pow(12) - 1) / 2]);
    }

    #[test]
    fn wrong_numbers_are_named() {
        let says = |sizes: &[i64], strides: &[i64], part: &str| {
            let text = Strided::new(sizes, [strides]).unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        };
        says(&[2, 3], &[1], "expected 2 of them, one for each size, got [1]");
        says(&[2, -3], &[1, 1], "`sizes`: expected numbers of at least 0, got [2, -3]");
        says(&[2], &[-1], "`strides`: expected numbers of at least 0, got [-1]");
        says(&[i64::MAX, 2], &[0, 0], "elements");
        says(&[3, 3], &[i64::MAX / 2, i64::MAX / 2], "offsets of at most");
    }
}
