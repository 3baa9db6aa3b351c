//! Kernels whose result depends on an element's index in logical row-major order, for any strides.

use super::tiles::{Tiles, block_len};
use keyway_cpu_loops::Cost;
use keyway_sdk::author::{Element, Error, Lanes, View, ViewMut, parallel_for};
use std::mem::MaybeUninit;

/// Elements that are computed at a time; a multiple of four, so that a piece begins with a whole random block.
pub const PIECE: usize = 256;

/// Bytes of a tile, so that it stays in the caches with its operands.
const TILE: usize = 32 * 1024;
/// Bytes of contiguous elements of a tile: some cache lines.
const LINES: usize = 256;
/// Elements of a tile of a mask.
const MASKED: usize = 16 * 1024;

/// Computes the elements of `out` in chunks: `make(first, values)` fills `values` with elements `first..`.
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

/// The function that computes a piece: the index of its first element, the elements read, and the elements to write.
type Make<'a, A, T> = &'a (dyn Fn(usize, &[A], &mut [T]) + Sync);

// The function is passed by address once for each chunk: the loops around it are compiled once for each type.
fn transform<A: Element, T: Element>(
    input: Option<View<'_, A>>,
    out: &mut ViewMut<'_, T>,
    cost: Cost,
    make: Make<'_, A, T>,
) -> Result<(), Error> {
    if !out.is_contiguous() || input.is_some_and(|view| !view.is_contiguous()) {
        return by_tiles(input, out, cost, make);
    }
    let (numel, to) = (out.numel(), out.lanes());
    // SAFETY: reads stay within the sizes of the view, which the host guarantees for the call.
    let from = input.map(|view| unsafe { Lanes::new(view.as_ptr().cast_mut()) });
    parallel_for(numel.div_ceil(PIECE), (cost.grain() / PIECE).max(1), |pieces| {
        let mut read = [A::default(); PIECE];
        for piece in pieces {
            let first = piece * PIECE;
            let n = PIECE.min(numel - first);
            let read = &mut read[..if from.is_some() { n } else { 0 }];
            if let Some(from) = from {
                for (i, slot) in read.iter_mut().enumerate() {
                    // SAFETY: the element exists. No other thread writes it: an output that meets the input is the input, of
                    // which each thread has its own pieces.
                    *slot = unsafe { from.read(first + i) };
                }
            }
            // SAFETY: the output is contiguous, and each element is in one piece. If the input is the output, its elements were
            // copied first, and no other thread reads them.
            let values = unsafe { std::slice::from_raw_parts_mut(to.as_ptr().add(first), n) };
            make(first, read, values);
        }
    })
}

/// As [`transform`], for any strides.
#[inline(never)]
fn by_tiles<A: Element, T: Element>(
    input: Option<View<'_, A>>,
    out: &mut ViewMut<'_, T>,
    cost: Cost,
    make: Make<'_, A, T>,
) -> Result<(), Error> {
    if out.numel() == 0 {
        return Ok(());
    }
    let largest = size_of::<T>().max(size_of::<A>()).max(1);
    let strides = [out.strides(), input.map_or(out.strides(), |view| view.strides())];
    let capacity = TILE / largest;
    let tiles = &Tiles::new(out.sizes(), strides, capacity, LINES / largest);
    let to = out.lanes();
    // SAFETY: reads stay within the sizes and strides of the view, which the host guarantees for the call.
    let from = input.map(|view| unsafe { Lanes::new(view.as_ptr().cast_mut()) });
    parallel_for(tiles.len(), cost.grain().div_ceil(tiles.tile_len()), |numbers| {
        let mut read = vec![A::default(); if from.is_some() { block_len(capacity) } else { 0 }];
        let mut values = vec![T::default(); block_len(capacity)];
        for tile in numbers.map(|number| tiles.tile(number)) {
            if let Some(from) = from {
                // SAFETY: the strides are those of the input, whose elements are copied as bits and normalised one by one,
                // since not every bit pattern is a valid `bool`. No other thread writes them: an output that overlaps the input
                // is the input itself, and each thread has its own tiles.
                unsafe {
                    let block = read.as_mut_ptr().cast::<MaybeUninit<A>>();
                    tiles.gather(&tile, 1, from.as_ptr().cast(), block);
                    if size_of::<A>() == 1 {
                        (0..read.len()).for_each(|i| {
                            let block = block.cast::<A>().add(i);
                            block.write(A::load(block));
                        });
                    }
                }
            }
            tiles.pieces(&tile, |first, at, n| {
                let read = if from.is_some() { &read[at..at + n] } else { &[] };
                make(first, read, &mut values[at..at + n]);
            });
            // SAFETY: the strides are those of the output, and each element is in one tile.
            unsafe { tiles.scatter(&tile, 0, to.as_ptr(), values.as_ptr()) };
        }
    })
}

/// Computes the elements of `out` from truth values and the elements of an input of the same shape in other memory:
/// `choose(first, mask)` fills the mask of elements `first..`, and `make(read, mask, values)` reads elements in any order.
pub fn produce_masked<A: Element, T: Element>(
    input: Option<View<'_, A>>,
    mut out: ViewMut<'_, T>,
    cost: Cost,
    choose: impl Fn(usize, &mut [u8]) + Sync,
    make: impl Fn(&[A], &[u8], &mut [T]) + Sync,
) -> Result<(), Error> {
    // The elements are passed to `make` in memory: each bit pattern must be a value, and none may be written during the call.
    let apart = input.is_none_or(|view| size_of::<A>() > 1 && view.raw().data != out.raw().data);
    let strides = [out.strides(), input.map_or(out.strides(), |view| view.strides())];
    let across = || Some(Tiles::new(out.sizes(), strides, MASKED, usize::MAX)).filter(Tiles::are_across);
    let tiles = if apart && !out.is_contiguous() && out.numel() > 0 { across() } else { None };
    let Some(tiles) = &tiles else {
        return transform(input, &mut out, cost, &|first, read, values| {
            let mut mask = [0; PIECE];
            let mask = &mut mask[..values.len()];
            choose(first, mask);
            make(read, mask, values);
        });
    };
    let to = out.lanes();
    // SAFETY: reads stay within the sizes and strides of the view, which the host guarantees for the call.
    let from = input.map(|view| unsafe { Lanes::new(view.as_ptr().cast_mut()) });
    parallel_for(tiles.len(), cost.grain().div_ceil(tiles.tile_len()), |numbers| {
        let (mut mask, mut across) = (vec![0u8; block_len(MASKED)], vec![0u8; MASKED]);
        for tile in numbers.map(|number| tiles.tile(number)) {
            tiles.pieces(&tile, |first, at, n| choose(first, &mut mask[at..at + n]));
            tiles.transposed(&tile, &mut across, &mask);
            tiles.runs(&tile, |[at, from_at], begin, n| {
                // SAFETY: runs are elements of the output, each in one tile, and of the input, which is other memory.
                unsafe {
                    let values = std::slice::from_raw_parts_mut(to.as_ptr().offset(at), n);
                    let read = match from {
                        Some(from) => {
                            std::slice::from_raw_parts(from.as_ptr().cast_const().offset(from_at), n)
                        }
                        None => &[],
                    };
                    make(read, &across[begin..begin + n], values);
                }
            });
        }
    })
}
