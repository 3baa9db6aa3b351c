//! Lists that the host passes by address, and the bytes that tensors may touch.

use super::dtype_size::known_size;
use crate::abi::codes::tensor_flag;
use crate::abi::tensor::RawTensor;

/// `len` entries at `pointer`, which may be null if `len` is 0.
///
/// # Safety
/// `pointer` must be null or valid for `len` reads of entries that do not change during `'a`; the caller upholds this.
#[inline(always)]
pub(crate) unsafe fn entries<'a, T>(pointer: *const T, len: usize) -> &'a [T] {
    if len == 0 || pointer.is_null() {
        return &[];
    }
    // SAFETY: the caller guarantees `len` readable entries.
    unsafe { std::slice::from_raw_parts(pointer, len) }
}

/// Bytes that a tensor may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Nothing,
    Bytes(usize, usize),
    Unknown,
}

impl Extent {
    pub(crate) fn overlaps(self, other: Extent) -> bool {
        match (self, other) {
            (Extent::Nothing, _) | (_, Extent::Nothing) => false,
            (Extent::Bytes(a, b), Extent::Bytes(c, d)) => a < d && c < b,
            _ => true,
        }
    }
}

pub(crate) fn extent(raw: &RawTensor) -> Extent {
    if raw.numel <= 0 || raw.data.is_null() {
        return Extent::Nothing;
    }
    let Some(size) = known_size(raw.dtype) else { return Extent::Unknown };
    let elements = if raw.flags & tensor_flag::CONTIGUOUS != 0 {
        raw.numel as usize
    } else {
        // SAFETY: both lists are null or have `ndim` entries; the host upholds this.
        let [sizes, strides] =
            [raw.sizes, raw.strides].map(|list| unsafe { entries(list, raw.ndim as usize) });
        1 + sizes.iter().zip(strides).map(|(n, s)| (n - 1) as usize * *s as usize).sum::<usize>()
    };
    let start = raw.data as usize;
    Extent::Bytes(start, start + elements * size)
}

/// Whether `range` overlaps the memory of a tensor or of one of its components.
///
/// # Safety
/// `raw` must be null or a valid tensor; the host upholds this for each tensor of a call.
pub(crate) unsafe fn overlaps(range: Extent, raw: *const RawTensor) -> bool {
    // SAFETY: the caller guarantees null or a valid tensor.
    let Some(raw) = (unsafe { raw.as_ref() }) else { return false };
    // SAFETY: `components` has `n_components` valid entries; the host upholds this.
    let components = unsafe { entries(raw.components, raw.n_components as usize) };
    // SAFETY: as above.
    range.overlaps(extent(raw)) || components.iter().any(|&c| unsafe { overlaps(range, c) })
}
