//! Type-erased operands of an element-wise kernel.

use crate::pack::{Rectangle, pack};
use keyway_sdk::abi::codes::tensor_flag;
use keyway_sdk::abi::tensor::RawTensor;
use keyway_sdk::author::{Element, View, ViewMut};

/// The maximum number of operands: the output and up to three inputs.
pub(crate) const OPERANDS: usize = 4;

/// The addresses of the output and of the inputs of a run; those beyond the function's inputs are arbitrary.
pub(crate) type Addresses = [*mut u8; OPERANDS];

/// One value per operand; those beyond the inputs are 0.
pub(crate) type PerOperand = [usize; OPERANDS];

/// An operand: a strided tensor in host memory, and the size of its elements.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    pub(crate) tensor: &'a RawTensor,
    pub(crate) bytes: usize,
}

/// # Safety
/// `pointer` must be null or valid for `len` reads of entries that do not change during `'a`; the host upholds this for the
/// sizes and strides of a tensor.
#[inline(always)]
unsafe fn entries<'a>(pointer: *const i64, len: usize) -> &'a [i64] {
    if len == 0 || pointer.is_null() {
        return &[];
    }
    // SAFETY: the caller guarantees `len` readable entries.
    unsafe { std::slice::from_raw_parts(pointer, len) }
}

impl<'a> Operand<'a> {
    #[inline(always)]
    pub(crate) fn of_input<T: Element>(view: &View<'a, T>) -> Self {
        Operand { tensor: view.raw(), bytes: size_of::<T>() }
    }

    #[inline(always)]
    pub(crate) fn of_output<T: Element>(view: &ViewMut<'a, T>) -> Self {
        Operand { tensor: view.raw(), bytes: size_of::<T>() }
    }

    pub(crate) fn sizes(&self) -> &'a [i64] {
        // SAFETY: there are `ndim` sizes during the lifetime of the tensor; the host upholds this.
        unsafe { entries(self.tensor.sizes, self.tensor.ndim as usize) }
    }

    pub(crate) fn strides(&self) -> &'a [i64] {
        // SAFETY: as above, since a view is of strided tensors only.
        unsafe { entries(self.tensor.strides, self.tensor.ndim as usize) }
    }

    pub(crate) fn numel(&self) -> usize {
        self.tensor.numel.max(0) as usize
    }

    pub(crate) fn is_contiguous(&self) -> bool {
        self.tensor.flags & tensor_flag::CONTIGUOUS != 0
    }

    /// The address range from the first element to the last.
    pub(crate) fn range(&self) -> (usize, usize) {
        let last = if self.is_contiguous() {
            self.numel().saturating_sub(1)
        } else {
            self.sizes().iter().zip(self.strides()).map(|(n, s)| (n - 1).max(0) as usize * *s as usize).sum()
        };
        let begin = self.tensor.data as usize;
        (begin, begin + if self.numel() == 0 { 0 } else { (last + 1) * self.bytes })
    }

    pub(crate) fn overlaps(&self, other: (usize, usize)) -> bool {
        let own = self.range();
        own.0 < other.1 && other.0 < own.1
    }

    /// Whether the elements of this operand have the same addresses and size as the other's, given equal strides.
    #[inline(always)]
    pub(crate) fn coincides(&self, other: &Operand<'_>) -> bool {
        self.tensor.data == other.tensor.data && self.bytes == other.bytes
    }

    /// Whether all indices have the same address.
    pub(crate) fn is_single(&self) -> bool {
        self.numel() == 1 || self.strides().iter().all(|s| *s == 0)
    }
}

/// `a == b` without a call of `memcmp`, which costs more than comparing a few sizes.
#[inline(always)]
pub(crate) fn same(a: &[i64], b: &[i64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// The addresses and element sizes of all operands, for all threads.
pub(crate) struct Operands {
    pub(crate) data: Addresses,
    pub(crate) bytes: PerOperand,
}

// SAFETY: the addresses are used for disjoint parts of the output, and for inputs that are not written concurrently; if an
// input is exactly the output, a thread reads only the part that it writes.
unsafe impl Sync for Operands {}

// Unrolled by operand: the compiler would vectorise loops, which takes longer for so few operands.
impl Operands {
    pub(crate) fn new(operands: &[Operand<'_>]) -> Self {
        let data = |k: usize| operands.get(k).map_or(std::ptr::null_mut(), |o| o.tensor.data.cast());
        let bytes = |k: usize| operands.get(k).map_or(0, |o| o.bytes);
        Operands {
            data: [data(0), data(1), data(2), data(3)],
            bytes: [bytes(0), bytes(1), bytes(2), bytes(3)],
        }
    }

    /// The addresses of the elements at these offsets. The address of an absent operand remains null.
    pub(crate) fn at(&self, offsets: PerOperand) -> Addresses {
        let at = |k: usize| self.data[k].wrapping_add(offsets[k] * self.bytes[k]);
        [at(0), at(1), at(2), at(3)]
    }
}

/// Writes `count` copies of one element.
///
/// # Safety
/// As for [`pack`].
pub(crate) unsafe fn repeat(bytes: usize, to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: as the caller guarantees.
    unsafe { pack(bytes, to, from, Rectangle { rows: 1, columns: count, row: 0, column: 0 }) }
}
