//! The memory layout of the normalised elements.

use crate::kernels::buffer::Buffer;
use crate::kernels::moments::widened;
use keyway_cpu_loops::vectors::Lanes as Elements;
use keyway_cpu_loops::{CallExt, transpose, widen_transposed};
use keyway_sdk::author::{Call, Element, Error, Plain, Tensor};

/// A loop over a dimension: its size and stride.
type Loop = (usize, usize);

/// The memory layout of tensors whose last dimensions are normalised.
pub enum Arrangement {
    /// The elements of one normalisation are a dense row.
    Rows(Rows),
    /// The elements of one normalisation are a column of a matrix with dense rows.
    Columns(Columns),
}

/// Dense rows, each normalised on its own.
pub struct Rows {
    lead: Vec<Loop>,
    /// For a row that is not in row-major order: the sizes of its two groups of dimensions, in row-major order; the groups
    /// are swapped in memory.
    exchanged: Option<[usize; 2]>,
}

/// Matrices with dense rows, each of whose columns is normalised on its own.
pub struct Columns {
    lead: Vec<Loop>,
    /// The number of elements of a column.
    pub n: usize,
    /// The row stride, in elements.
    pub step: usize,
    /// The number of columns.
    pub count: usize,
}

/// The product of the outer loops' sizes: the number of rows, or of matrices.
fn count(lead: &[Loop]) -> usize {
    lead.iter().map(|(size, _)| size).product()
}

fn offset(lead: &[Loop], mut index: usize) -> usize {
    let mut at = 0;
    for (size, stride) in lead.iter().rev() {
        at += index % size * stride;
        index /= size;
    }
    at
}

impl Rows {
    /// Contiguous rows.
    pub fn dense(rows: usize, n: usize) -> Rows {
        Rows { lead: vec![(rows, n)], exchanged: None }
    }

    /// The number of rows.
    pub fn count(&self) -> usize {
        count(&self.lead)
    }

    /// Whether consecutive rows of `n` elements are contiguous.
    pub fn are_joined(&self, n: usize) -> bool {
        match self.lead[..] {
            [] => true,
            [(_, stride)] => stride == n,
            _ => false,
        }
    }

    /// The offset of a row's first element.
    #[inline(always)]
    pub fn at(&self, row: usize) -> usize {
        match self.lead[..] {
            [(_, stride)] => row * stride,
            _ => offset(&self.lead, row),
        }
    }

    /// Argument `i`, one value for each normalised element, in the memory order of a row; `n` times `otherwise` if it is
    /// absent.
    pub fn widened<T: Elements>(
        &self,
        call: &Call,
        i: usize,
        n: usize,
        otherwise: T::Acc,
    ) -> Result<Buffer<T::Acc>, Error> {
        let Some([outer, inner]) = self.exchanged.filter(|_| !call.is_none(i).unwrap_or(true)) else {
            return widened::<T>(call, i, n, otherwise);
        };
        let (given, mut numbers) = (call.contiguous::<T>(i)?, Buffer::zeroed(n)?);
        assert!(given.len() == outer * inner && n == outer * inner);
        // SAFETY: both have `n` elements.
        unsafe {
            widen_transposed::<T>(numbers.as_mut_ptr(), outer, given.as_ptr(), inner, (outer, inner));
        }
        Ok(numbers)
    }

    /// Permutes values of the normalised elements from the memory order of a row to row-major order.
    pub fn in_row_major_order<T: Plain + Element>(&self, numbers: &mut [T]) -> Result<(), Error> {
        if let Some([outer, inner]) = self.exchanged
            && numbers.len() == outer * inner
        {
            let mut transposed = Buffer::zeroed(numbers.len())?;
            // SAFETY: both have the same number of elements.
            unsafe {
                transpose(transposed.as_mut_ptr(), inner, numbers.as_ptr(), outer, inner, outer);
            }
            numbers.copy_from_slice(&transposed);
        }
        Ok(())
    }
}

impl Columns {
    /// The number of matrices.
    pub fn matrices(&self) -> usize {
        count(&self.lead)
    }

    /// The offset of a matrix.
    pub fn at(&self, matrix: usize) -> usize {
        offset(&self.lead, matrix)
    }
}

/// Merges adjacent loops, in the given order.
fn joined(loops: impl Iterator<Item = Loop>) -> Vec<Loop> {
    let mut all: Vec<Loop> = Vec::new();
    for (size, stride) in loops.filter(|(size, _)| *size != 1) {
        match all.last_mut() {
            Some(last) if last.1 == size * stride => *last = (last.0 * size, stride),
            _ => all.push((size, stride)),
        }
    }
    all
}

/// The arrangement of tensors with the same shape and strides, normalised over the last `dims` dimensions; `None` if
/// strides differ, elements overlap, or the layout is neither of rows nor of columns.
pub fn arrangement(tensors: &[Tensor<'_>], dims: usize) -> Option<Arrangement> {
    let (first, others) = tensors.split_first()?;
    let (sizes, strides) = (first.sizes(), first.strides());
    let alike = |other: &Tensor<'_>| {
        other.data_ptr() != first.data_ptr()
            && other.sizes() == sizes
            && (sizes.iter().zip(strides.iter().zip(other.strides()))).all(|(n, (a, b))| *n == 1 || a == b)
    };
    if first.numel() == 0 || strides.iter().any(|s| *s < 0) || !others.iter().all(alike) {
        return None;
    }
    let loops = || sizes.iter().zip(strides).map(|(size, stride)| (*size as usize, *stride as usize));
    let lead = sizes.len().checked_sub(dims)?;
    let row_major = joined(loops().skip(lead));
    let mut by_stride = row_major.clone();
    by_stride.sort_by_key(|(_, stride)| std::cmp::Reverse(*stride));
    let all = joined(by_stride.iter().copied());
    let (n, step) = match all[..] {
        [] => (1, 1),
        [one] => one,
        _ => return None,
    };
    let mut outer: Vec<Loop> = loops().take(lead).collect();
    outer.sort_by_key(|(_, stride)| std::cmp::Reverse(*stride));
    let mut outer = joined(outer.into_iter());
    let exchanged = match row_major[..] {
        [] | [_] => None,
        [a, b] => Some([a.0, b.0]),
        _ => return None,
    };
    if step == 1 {
        return Some(Arrangement::Rows(Rows { lead: outer, exchanged }));
    }
    match outer.pop() {
        Some((count, 1)) if exchanged.is_none() => {
            Some(Arrangement::Columns(Columns { lead: outer, n, step, count }))
        }
        _ => None,
    }
}
