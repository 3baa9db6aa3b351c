//! Transforms of all lines of a tensor along one dimension.

use keyway_cpu_loops::parallel_try;
use keyway_sdk::author::strided::{Dims, Odometer};
use keyway_sdk::author::{Element, Error, Lanes, Plain, Scratch};
use rustfft::num_complex::Complex;

/// Elements that a task transforms at least.
const TASK: usize = 1 << 14;
/// Strided lines that are gathered together at most: the elements of a few cache lines.
const LINES: usize = 16;
/// Elements of a block of strided lines, approximately, so that it fits L2.
const BLOCK: usize = 1 << 15;
/// Elements between two lines of a block, so that the elements of one index are not all in one set of the L1 cache.
const PAD: usize = 8;

/// The transform of a line.
pub trait Transform: Sync {
    /// The elements that it reads.
    type From: Plain + Element;
    /// The elements that it writes.
    type To: Plain + Element;
    /// The type of the parts of its scratch memory.
    type Part;

    /// Scratch elements for a line.
    fn scratch(&self) -> usize;

    /// Transforms one or more contiguous lines of `from`, whose content is then unspecified, to those of `to`.
    ///
    /// # Errors
    /// A fault of the plan.
    fn lines(
        &self,
        from: &mut [Self::From],
        to: &mut [Self::To],
        scratch: &mut [Complex<Self::Part>],
    ) -> Result<(), Error>;
}

/// One side of a pass: strided memory.
#[derive(Clone, Copy)]
pub struct Side<'a, T> {
    /// The address of the first element.
    pub data: Lanes<'a, T>,
    /// The strides.
    pub strides: &'a [i64],
    /// Elements along the dimension of the pass.
    pub len: usize,
}

/// Transforms each line along dimension `dim` of `from` to that of `to`. `sizes` are those of the tensors, that of `dim` apart.
/// No size is 0. Both sides may be the same memory, with the same strides and lengths.
///
/// # Safety
/// The sizes, strides and lengths must be those of elements that exist and that nothing else writes, and for `to` reads; except
/// for the same memory, no element of `from` may be one of `to`, and no two elements of `to` may be one.
///
/// # Errors
/// Memory that does not suffice; a fault of a plan.
pub unsafe fn pass<X: Transform>(
    sizes: &[i64],
    dim: usize,
    from: Side<'_, X::From>,
    to: Side<'_, X::To>,
    transform: &X,
) -> Result<(), Error>
where
    X::Part: Copy,
    Complex<X::Part>: Plain,
{
    let mut outer = sizes.to_vec();
    outer[dim] = 1;
    let dims = Dims::collapse(&outer, &[Some(to.strides), Some(from.strides)]);
    let lines: usize = dims.iter().map(|dim| dim.size).product();
    let (source, sink) = (from.strides[dim] as usize, to.strides[dim] as usize);
    let longest = from.len.max(to.len);
    let direct = sink == 1 || to.len == 1;
    let in_rows = direct && (source == 1 || from.len == 1);
    let block = (BLOCK / longest).clamp(if in_rows { 1 } else { 4 }, LINES).min(lines);
    let grain = (TASK / (block * longest)).max(1);
    let pad = if in_rows { 0 } else { PAD };
    let (wide_from, wide_to) = (from.len + pad, to.len + pad);
    parallel_try(lines.div_ceil(block), grain, |range| {
        let mut gathered = Scratch::<X::From>::zeroed(block * wide_from)?;
        let mut made = Scratch::<X::To>::zeroed(if direct { 0 } else { block * wide_to })?;
        let mut scratch = Scratch::<Complex<X::Part>>::zeroed(transform.scratch())?;
        let mut position = Odometer::new(&dims, range.start * block);
        let mut offsets = [[0; 2]; LINES];
        for nth in range {
            let count = block.min(lines - nth * block);
            for offset in &mut offsets[..count] {
                *offset = position.offsets();
                position.step(&dims);
            }
            let offsets = &offsets[..count];
            // Offsets of the output ascend by the length of a line or more.
            let together = in_rows && offsets[count - 1][0] == offsets[0][0] + (count - 1) * to.len;
            // SAFETY: the offsets are those of lines within the sizes, and the caller upholds that these exist and that each line
            // is read and written by one task.
            unsafe {
                gather(from.data, offsets, source, from.len, &mut gathered, wide_from);
                if together {
                    let written = to.data.slice_mut(offsets[0][0], count * to.len);
                    transform.lines(&mut gathered[..count * from.len], written, &mut scratch)?;
                    continue;
                }
                for (line, offset) in offsets.iter().enumerate() {
                    let read = &mut gathered[line * wide_from..][..from.len];
                    let written = match direct {
                        true => to.data.slice_mut(offset[0], to.len),
                        false => &mut made[line * wide_to..][..to.len],
                    };
                    transform.lines(read, written, &mut scratch)?;
                }
                if !direct {
                    scatter(&made, wide_to, to.data, offsets, sink, to.len);
                }
            }
        }
        Ok(())
    })
}

/// Copies lines to rows of `width` elements.
///
/// # Safety
/// The elements at the offsets (the second ones) and the stride must exist, and no other thread may write them.
unsafe fn gather<T: Plain + Element>(
    from: Lanes<'_, T>,
    offsets: &[[usize; 2]],
    stride: usize,
    len: usize,
    to: &mut [T],
    width: usize,
) {
    if stride == 1 {
        for (row, offset) in to.chunks_exact_mut(width).zip(offsets) {
            // SAFETY: the caller guarantees the elements; a `Plain` type has no padding, so its elements are copied as they are.
            unsafe { from.as_ptr().add(offset[1]).copy_to_nonoverlapping(row.as_mut_ptr(), len) };
        }
        return;
    }
    if let Some(first) = adjacent(offsets, 1) {
        let to = &mut to[..LINES * width];
        for i in 0..len {
            for line in 0..LINES {
                // SAFETY: the caller guarantees the element.
                to[line * width + i] = unsafe { from.read(first + line + i * stride) };
            }
        }
        return;
    }
    for i in 0..len {
        for (line, offset) in offsets.iter().enumerate() {
            // SAFETY: the caller guarantees the element.
            to[line * width + i] = unsafe { from.read(offset[1] + i * stride) };
        }
    }
}

/// The first offset of side `side` of a whole block, if each line is one element after the line before it: a loop of constant length.
fn adjacent(offsets: &[[usize; 2]], side: usize) -> Option<usize> {
    let first = offsets.first()?[side];
    let follow = |(line, offset): (usize, &[usize; 2])| offset[side] == first + line;
    (offsets.len() == LINES && offsets.iter().enumerate().all(follow)).then_some(first)
}

/// Copies rows of `width` elements to lines.
///
/// # Safety
/// The elements at the offsets (the first ones) and the stride must exist, and no other thread may access them.
unsafe fn scatter<T: Plain + Element>(
    from: &[T],
    width: usize,
    to: Lanes<'_, T>,
    offsets: &[[usize; 2]],
    stride: usize,
    len: usize,
) {
    if let Some(first) = adjacent(offsets, 0) {
        let from = &from[..LINES * width];
        for i in 0..len {
            for line in 0..LINES {
                // SAFETY: the caller guarantees the element.
                unsafe { to.write(first + line + i * stride, from[line * width + i]) };
            }
        }
        return;
    }
    for i in 0..len {
        for (line, offset) in offsets.iter().enumerate() {
            // SAFETY: the caller guarantees the element.
            unsafe { to.write(offset[0] + i * stride, from[line * width + i]) };
        }
    }
}

/// The argument as the source of a pass along dimension `dim`.
pub fn source<'a, T: Plain + Element>(view: &keyway_sdk::author::View<'a, T>, dim: usize) -> Side<'a, T> {
    // SAFETY: the memory of an argument is valid for the call, and sources are only read.
    let data = unsafe { Lanes::new(view.as_ptr().cast_mut()) };
    Side { data, strides: view.strides(), len: view.sizes()[dim] as usize }
}

/// Row-major memory as one side of a pass, `len` elements along its dimension.
pub fn rows<'a, T>(data: &'a mut [T], strides: &'a [i64], len: usize) -> Side<'a, T> {
    // SAFETY: the address is used within the slice, which is borrowed for as long.
    let data = unsafe { Lanes::new(data.as_mut_ptr()) };
    Side { data, strides, len }
}
