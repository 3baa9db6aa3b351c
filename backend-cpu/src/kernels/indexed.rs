//! Kernels whose result depends on where an element stands: its number in logical row-major order, whatever
//! the strides.

use keyway_cpu_loops::Cost;
use keyway_sdk::author::{Element, Error, Lanes, View, ViewMut, parallel_for};

/// Elements that are made at a time; a multiple of four, so that a piece begins with a whole random block.
pub const PIECE: usize = 256;

/// A strided iterator: the offsets of consecutive elements in row-major order.
struct StridedIter<'a> {
    sizes: &'a [i64],
    strides: &'a [i64],
    index: Vec<i64>,
    offset: i64,
}

impl<'a> StridedIter<'a> {
    /// From element `number` on.
    fn new(sizes: &'a [i64], strides: &'a [i64], number: usize) -> Self {
        let mut index = vec![0; sizes.len()];
        let (mut rest, mut offset) = (number as i64, 0);
        for d in (0..sizes.len()).rev() {
            index[d] = rest % sizes[d].max(1);
            rest /= sizes[d].max(1);
            offset += index[d] * strides[d];
        }
        StridedIter { sizes, strides, index, offset }
    }

    fn next(&mut self) -> usize {
        let at = self.offset;
        for d in (0..self.sizes.len()).rev() {
            self.index[d] += 1;
            self.offset += self.strides[d];
            if self.index[d] < self.sizes[d] {
                break;
            }
            self.offset -= self.index[d] * self.strides[d];
            self.index[d] = 0;
        }
        at as usize
    }
}

/// Makes the elements of `out` in pieces: `make(first, values)` fills `values` with elements `first..`.
pub fn produce<T: Element>(
    mut out: ViewMut<'_, T>,
    cost: Cost,
    make: impl Fn(usize, &mut [T]) + Sync,
) -> Result<(), Error> {
    transform::<T, T>(None, &mut out, cost, &|first, _, values| make(first, values))
}

/// As [`produce`], with the elements of an input of the same shape, which may be the output itself.
pub fn produce_from<A: Element, T: Element>(
    input: View<'_, A>,
    mut out: ViewMut<'_, T>,
    cost: Cost,
    make: impl Fn(usize, &[A], &mut [T]) + Sync,
) -> Result<(), Error> {
    transform(Some(input), &mut out, cost, &make)
}

/// What makes a piece: the number of its first element, the elements read, and those to write.
type Make<'a, A, T> = &'a (dyn Fn(usize, &[A], &mut [T]) + Sync);

// The maker is given once a piece by address: the loops around it are compiled once for each type.
fn transform<A: Element, T: Element>(
    input: Option<View<'_, A>>,
    out: &mut ViewMut<'_, T>,
    cost: Cost,
    make: Make<'_, A, T>,
) -> Result<(), Error> {
    let (numel, sizes, strides, straight) = (out.numel(), out.sizes(), out.strides(), out.is_contiguous());
    let to = out.lanes();
    // SAFETY: reads stay within the sizes and strides of the view, which the host guarantees for the call.
    let from =
        input.map(|view| (unsafe { Lanes::new(view.as_ptr().cast_mut()) }, view.sizes(), view.strides()));
    let in_order = input.is_some_and(|view| view.is_contiguous());
    parallel_for(numel.div_ceil(PIECE), (cost.grain() / PIECE).max(1), |pieces| {
        let (mut read, mut values) = ([A::default(); PIECE], [T::default(); PIECE]);
        for piece in pieces {
            let first = piece * PIECE;
            let n = PIECE.min(numel - first);
            let read = match from {
                Some((from, ..)) if in_order => {
                    for (i, slot) in read[..n].iter_mut().enumerate() {
                        // SAFETY: as below.
                        *slot = unsafe { from.read(first + i) };
                    }
                    &read[..n]
                }
                Some((from, sizes, strides)) => {
                    let mut offsets = StridedIter::new(sizes, strides, first);
                    for slot in &mut read[..n] {
                        // SAFETY: the iterator stays within the view. No other thread writes these elements: an
                        // output that meets the input is the input, of which each thread has its own pieces.
                        *slot = unsafe { from.read(offsets.next()) };
                    }
                    &read[..n]
                }
                None => &[],
            };
            if straight {
                // SAFETY: the output is contiguous, and each element is in one piece. What is read of an input that is the
                // output was copied, and nobody else reads it.
                let values = unsafe { std::slice::from_raw_parts_mut(to.as_ptr().add(first), n) };
                make(first, read, values);
            } else {
                make(first, read, &mut values[..n]);
                let mut offsets = StridedIter::new(sizes, strides, first);
                for value in &values[..n] {
                    // SAFETY: the iterator stays within the output, and each element is in one piece.
                    unsafe { to.write(offsets.next(), *value) };
                }
            }
        }
    })
}
