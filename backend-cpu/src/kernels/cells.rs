//! Tensor memory as cells of 1, 2, 4, 8 or 16 bytes. An op that only moves elements is compiled once per cell size, not once per
//! dtype.

use super::nest::{Nest, dims};
use keyway_cpu_loops::{copy_dense, transpose};
use keyway_sdk::author::{Call, Element, Error, Lanes, OwnedTensor, Plain, Scratch, Tensor, dtype_size};
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

/// Registers a kernel that moves cells, for each dtype by its element size.
macro_rules! cell_kernel {
    ($op:literal, $signature:literal, $run:ident $(, $flag:ident)?) => {
        $crate::kernels::register! {
            op: $op, signature: $signature, device: "cpu", layout: "strided",
            $(flags: $flag,)?
            f32 => $run::<u32>, f64 => $run::<u64>, f16 => $run::<u16>, bf16 => $run::<u16>,
            i8 => $run::<u8>, i16 => $run::<u16>, i32 => $run::<u32>, i64 => $run::<u64>,
            u8 => $run::<u8>, u16 => $run::<u16>, u32 => $run::<u32>, u64 => $run::<u64>,
            bool => $run::<u8>, c64 => $run::<u64>,
            c128 => $run::<::keyway_sdk::author::c128>
        }
    };
}
pub(super) use cell_kernel;

/// The error for a dense output that cannot be borrowed as a slice, because an argument shares its memory.
#[cold]
pub fn overlap() -> Error {
    Error::Unsupported { what: "an output whose memory an argument meets".into() }
}

/// The memory of a tensor, or a copy of it.
pub struct Cells<'a, C> {
    /// The address of the element whose indices are all 0.
    pub lanes: Lanes<'a, C>,
    /// Sizes.
    pub sizes: Vec<usize>,
    /// Strides in elements.
    pub strides: Vec<isize>,
    /// The owner of the memory of `lanes`, if it is a copy.
    _copy: Option<Arc<dyn Any + Send + Sync>>,
}

impl<'a, C: Element> Cells<'a, C> {
    /// A tensor of a call.
    pub fn of(tensor: Tensor<'a>) -> Result<Self, Error> {
        if dtype_size(tensor.dtype()) != Some(size_of::<C>()) || tensor.n_components() != 0 {
            return Err(Error::InvalidArgument {
                argument: "tensor",
                expected: format!("a strided tensor with elements of {} bytes", size_of::<C>()),
                got: format!("dtype {} in layout {}", tensor.dtype(), tensor.layout()),
            });
        }
        Ok(Cells {
            // SAFETY: the host guarantees the elements that the sizes and strides state, for the call; this
            // kernel is registered for the CPU, whose memory the host reads.
            lanes: unsafe { Lanes::new(tensor.data_ptr().cast()) },
            sizes: tensor.sizes().iter().map(|&s| s as usize).collect(),
            strides: tensor.strides().iter().map(|&s| s as isize).collect(),
            _copy: None,
        })
    }

    /// Argument `index` of a call.
    pub fn argument(call: &Call<'a>, index: usize) -> Result<Self, Error> {
        Cells::of(call.tensor(index)?)
    }

    /// Each tensor of list argument `index`.
    pub fn list(call: &Call<'a>, index: usize) -> Result<Vec<Self>, Error> {
        call.tensors(index)?.iter().map(Cells::of).collect()
    }

    /// Output `index` of a call, for reads and writes.
    pub fn output(call: &Call<'a>, index: usize) -> Result<Self, Error> {
        Cells::of(call.output(index)?)
    }

    /// An owned tensor that this kernel created.
    pub fn made(tensor: &'a mut OwnedTensor) -> Result<Self, Error> {
        Cells::of(tensor.tensor())
    }

    /// Elements of scratch memory, which must outlive every use.
    pub fn at(lanes: Lanes<'a, C>, sizes: Vec<usize>, strides: Vec<isize>) -> Self {
        Cells { lanes, sizes, strides, _copy: None }
    }

    /// The same memory with other sizes and strides, which must stay within it.
    #[must_use]
    pub fn shown_as(self, sizes: Vec<usize>, strides: Vec<isize>) -> Self {
        Cells { sizes, strides, ..self }
    }

    /// A 0-d tensor reshaped to one dimension of size 1; other tensors unchanged.
    #[must_use]
    pub fn with_dim(mut self) -> Self {
        if self.sizes.is_empty() {
            (self.sizes, self.strides) = (vec![1], vec![1]);
        }
        self
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.sizes.iter().product()
    }

    /// The strides of this tensor broadcast to `shape`.
    pub fn expanded_strides(&self, shape: &[usize]) -> Vec<isize> {
        let lead = shape.len().saturating_sub(self.sizes.len());
        let own = |d: usize| if self.sizes[d] == shape[lead + d] { self.strides[d] } else { 0 };
        (0..shape.len()).map(|d| if d < lead { 0 } else { own(d - lead) }).collect()
    }

    /// The same memory as cells of another type of the same size.
    pub fn cast<D: Element>(self) -> Cells<'a, D> {
        const { assert!(size_of::<C>() == size_of::<D>()) };
        // SAFETY: the types have the same size, and elements are read by `Element::load` alone.
        let lanes = unsafe { Lanes::new(self.lanes.as_ptr().cast()) };
        Cells { lanes, sizes: self.sizes, strides: self.strides, _copy: self._copy }
    }

    /// Whether both start at the same address, as the argument and the output of an in-place call do.
    pub fn is_at<D>(&self, other: &Cells<'_, D>) -> bool {
        self.lanes.as_ptr().addr() == other.lanes.as_ptr().addr()
    }
}

impl<'a, C: Plain> Cells<'a, C> {
    /// A copy if this starts at the address of `out`, which the kernel is about to write; otherwise the tensor itself.
    pub fn apart_from<D>(self, out: &Cells<'_, D>) -> Result<Self, Error> {
        if !self.is_at(out) || self.numel() == 0 {
            return Ok(self);
        }
        let mut copy = Scratch::zeroed(self.numel())?;
        let strides = row_major(&self.sizes);
        // SAFETY: the address is that of the scratch memory, which the result owns.
        let lanes = unsafe { Lanes::new(copy.as_mut_ptr()) };
        copy_block(lanes, &strides, self.lanes, &self.strides, &self.sizes)?;
        Ok(Cells { lanes, sizes: self.sizes, strides, _copy: Some(Arc::new(copy)) })
    }
}

/// Whether the elements are dense, in any order of the dimensions.
pub fn is_dense(sizes: &[i64], strides: &[i64]) -> bool {
    let mut dims: Vec<_> = sizes.iter().zip(strides).filter(|(size, _)| **size != 1).collect();
    dims.sort_by_key(|(_, stride)| **stride);
    let mut next = 1;
    dims.into_iter().all(|(size, stride)| {
        let dense = *stride == next;
        next *= size;
        dense
    })
}

/// Row-major strides.
pub fn row_major(sizes: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; sizes.len()];
    for d in (1..sizes.len()).rev() {
        strides[d - 1] = strides[d] * sizes[d].max(1) as isize;
    }
    strides
}

/// `lanes` moved by `offset` elements.
pub fn shifted<C>(lanes: Lanes<'_, C>, offset: isize) -> Lanes<'_, C> {
    // The address may be out of bounds if there are no elements, and is not read then.
    // SAFETY: callers use the result only for elements of the same tensor.
    unsafe { Lanes::new(lanes.as_ptr().wrapping_offset(offset)) }
}

/// Bytes of the widest vector.
const VECTOR: usize = 64;

/// Copies a run of cells with constant strides.
///
/// # Safety
/// There must be `len` cells at both addresses with these strides, the source readable, the target uniquely owned, and both
/// disjoint. The kernel that created the loops upholds this.
#[inline(always)]
pub unsafe fn copy_run<C: Element>(to: *mut C, to_step: isize, from: *const C, from_step: isize, len: usize) {
    // SAFETY: as the caller guarantees.
    unsafe {
        if to_step == 1 && from_step == 1 {
            copy_dense(to, from, len);
        } else if to_step == 1 && from_step == -1 {
            let first = from.wrapping_sub(len).wrapping_add(1);
            let reversed =
                |part: Range<usize>| part.for_each(|l| to.add(l).write(C::load(first.add(len - 1 - l))));
            let few = VECTOR / size_of::<C>();
            if len < few {
                reversed(0..len);
            } else {
                // Both runs are multiples of a vector; the last vector may write the same elements again.
                reversed(0..len / few * few);
                reversed(len - few..len);
            }
        } else if to_step == 1 && from_step == 0 {
            let value = C::load(from);
            (0..len).for_each(|l| to.add(l).write(value));
        } else {
            for l in 0..len as isize {
                to.offset(l * to_step).write(C::load(from.offset(l * from_step)));
            }
        }
    }
}

/// Bytes of each column that are transposed at a time: two cache lines, which the processor fetches together, and at most
/// as many rows as the TLB has entries for writes.
const STRIP: usize = 128;

/// The maximum number of elements of a row for copies of several rows at a time.
const FEW: usize = 64;

/// Copies a block of `sizes`; strides of the source may be 0 or negative.
pub fn copy_block<C: Element>(
    to: Lanes<'_, C>,
    to_strides: &[isize],
    from: Lanes<'_, C>,
    from_strides: &[isize],
    sizes: &[usize],
) -> Result<(), Error> {
    let nest = Nest::sorted(dims(sizes, [to_strides, from_strides]));
    // Larger elements are written as fast row by row, as their cache lines are reread from L2.
    if size_of::<C>() <= 2
        && let Some(across) = nest.across()
    {
        return across.for_each_strip(STRIP / size_of::<C>(), |[t, f], (rows, columns), (ts, fs)| {
            // SAFETY: as below.
            unsafe {
                transpose(to.as_ptr().offset(t), ts, from.as_ptr().cast_const().offset(f), fs, columns, rows)
            }
        });
    }
    let (len, [ts, fs]) = nest.inner();
    if len > FEW {
        return nest.for_each_row(1, |[t, f], len, _| {
            // SAFETY: sizes and strides are those of the two blocks; one work item writes each row of the target, and the
            // callers' source and target are disjoint.
            unsafe { copy_run(to.as_ptr().offset(t), ts, from.as_ptr().offset(f), fs, len) }
        });
    }
    nest.around().for_each_row(len, |[t, f], rows, [across, from_across]| {
        let (to, from) = (to.as_ptr().wrapping_offset(t), from.as_ptr().cast_const().wrapping_offset(f));
        // SAFETY: as above.
        unsafe {
            if rows > len && !(ts == 1 && fs == 1) {
                for c in 0..len as isize {
                    copy_run(to.offset(c * ts), across, from.offset(c * fs), from_across, rows);
                }
                return;
            }
            for r in 0..rows as isize {
                copy_run(to.offset(r * across), ts, from.offset(r * from_across), fs, len);
            }
        }
    })
}

/// Copies `from` into `to`, of the same sizes; does nothing if both are the same memory.
pub fn copy_all<C: Element>(to: &Cells<'_, C>, from: &Cells<'_, C>) -> Result<(), Error> {
    if to.is_at(from) {
        return Ok(());
    }
    copy_block(to.lanes, &to.strides, from.lanes, &from.strides, &to.sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<C: Element + From<u8>>() {
        for sizes in [[1, 1], [3, 70], [70, 3], [64, 64], [65, 129], [2, 1100], [130, 66], [300, 14], [9, 31]]
        {
            let [rows, columns] = sizes.map(|n: usize| n as isize);
            let n = sizes[0] * sizes[1];
            let mut from: Vec<C> = (0..n).map(|i| C::from((i * 31 % 251) as u8)).collect();
            let ways = [[columns, 1], [1, rows], [columns, -1], [-columns, 1], [-columns, -1], [1, -rows]];
            for (to_strides, strides) in
                ways[..2].iter().flat_map(|to| ways.iter().map(move |from| (to, from)))
            {
                let first: isize =
                    (0..2).filter(|d| strides[*d] < 0).map(|d| -strides[d] * (sizes[d] as isize - 1)).sum();
                let mut to = vec![C::from(252); n];
                // SAFETY: both have the elements, and are accessed through these addresses alone.
                unsafe {
                    let (to, from) = (Lanes::new(to.as_mut_ptr()), Lanes::new(from.as_mut_ptr()));
                    copy_block(to, to_strides, shifted(from, first), strides, &sizes).unwrap();
                }
                for (r, c) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
                    let made = to[(r * to_strides[0] + c * to_strides[1]) as usize];
                    let expected = from[(first + r * strides[0] + c * strides[1]) as usize];
                    assert_eq!(made, expected, "{sizes:?} {to_strides:?} {strides:?} at {r}, {c}");
                }
            }
        }
    }

    #[test]
    fn blocks_are_copied_whichever_way_they_lie() {
        check::<u8>();
        check::<u16>();
        check::<u32>();
        check::<u64>();
    }
}
