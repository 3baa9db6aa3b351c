//! Sizes and strides, and the arithmetic over them.

use crate::base::error::{Error, Result};
use smallvec::SmallVec;

/// Sizes or strides of a tensor, in elements; no heap up to 8 dimensions.
pub type Dims = SmallVec<[usize; 8]>;

/// The maximum number of dimensions of a tensor, as in NumPy.
pub const MAX_NDIM: usize = 64;

/// The maximum number of elements of a tensor: at 16 bytes each, the number of bytes does not overflow `isize`.
pub const MAX_NUMEL: usize = (isize::MAX as usize) / 16;

/// The number of elements.
///
/// # Errors
/// [`Error::Value`] beyond [`MAX_NDIM`] dimensions; [`Error::SizeOverflow`] if the elements, at 16 bytes each, exceed
/// `isize::MAX` bytes.
#[inline]
pub fn numel(op: &'static str, sizes: &[usize]) -> Result<usize> {
    counted(op, sizes, MAX_NUMEL)
}

/// The number of elements of an existing tensor. If it is empty, the product of its other sizes may overflow.
#[inline]
pub(crate) fn count(sizes: &[usize]) -> usize {
    if sizes.contains(&0) { 0 } else { sizes.iter().product() }
}

/// The number of elements of a composite tensor, whose sizes are independent of its memory.
///
/// # Errors
/// As [`numel`]; [`Error::SizeOverflow`] for more elements than `isize::MAX`.
pub(crate) fn composite_numel(op: &'static str, sizes: &[usize]) -> Result<usize> {
    counted(op, sizes, isize::MAX as usize)
}

#[inline(always)]
fn counted(op: &'static str, sizes: &[usize], most: usize) -> Result<usize> {
    if sizes.len() > MAX_NDIM {
        return Err(too_many_dimensions(op, sizes));
    }
    let mut product: usize = 1;
    let mut overflow = false;
    for &size in sizes {
        if size == 0 {
            return Ok(0);
        }
        let (next, over) = product.overflowing_mul(size);
        overflow |= over;
        product = next;
    }
    if overflow || product > most {
        return Err(size_overflow(op, sizes));
    }
    Ok(product)
}

/// The number of elements, and the end of the last element in elements from the storage's start. `None` if either
/// overflows, if there are too many dimensions, or if the number of strides differs from the number of sizes. The end is
/// unspecified for an empty tensor.
#[inline]
pub(crate) fn extent(offset: usize, sizes: &[usize], strides: &[usize]) -> Option<(usize, usize)> {
    if sizes.len() != strides.len() || sizes.len() > MAX_NDIM {
        return None;
    }
    let (mut numel, mut last) = (1usize, offset);
    for (&size, &stride) in sizes.iter().zip(strides) {
        let Some(steps) = size.checked_sub(1) else { return Some((0, 0)) };
        numel = numel.checked_mul(size)?;
        last = last.checked_add(steps.checked_mul(stride)?)?;
    }
    if numel > MAX_NUMEL { None } else { Some((numel, last.checked_add(1)?)) }
}

#[cold]
fn too_many_dimensions(op: &'static str, sizes: &[usize]) -> Error {
    Error::Value {
        op,
        argument: "sizes",
        expected: format!("at most {MAX_NDIM} dimensions"),
        got: format!("{} dimensions", sizes.len()),
    }
}

#[cold]
fn size_overflow(op: &'static str, sizes: &[usize]) -> Error {
    Error::SizeOverflow { op, sizes: sizes.into() }
}

/// Whether two lists of sizes are equal; for short lists faster than `memcmp`.
#[inline]
pub fn same(a: &[usize], b: &[usize]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x == y)
}

/// Row-major strides.
#[inline]
pub fn contiguous_strides(sizes: &[usize]) -> Dims {
    let mut strides = Dims::from_elem(1, sizes.len());
    let mut next = 1usize;
    for (stride, &size) in strides.iter_mut().zip(sizes).rev() {
        *stride = next;
        next = next.wrapping_mul(size.max(1));
    }
    strides
}

/// Strides with the channels (dimension 1) innermost, for 3, 4 or 5 dimensions.
pub fn channels_last_strides(sizes: &[usize]) -> Dims {
    let mut strides = Dims::from_elem(1, sizes.len());
    let mut next = sizes.get(1).copied().unwrap_or(1).max(1);
    for i in (2..sizes.len()).rev() {
        strides[i] = next;
        next = next.wrapping_mul(sizes[i].max(1));
    }
    if !sizes.is_empty() {
        strides[0] = next;
    }
    strides
}

/// Whether the elements are contiguous: row-major, without gaps. Strides of dimensions of size 1 are ignored.
#[inline]
pub fn is_contiguous(sizes: &[usize], strides: &[usize]) -> bool {
    let mut expected = 1;
    for (&size, &stride) in sizes.iter().zip(strides).rev() {
        if size == 0 {
            return true;
        }
        if size != 1 {
            if stride != expected {
                return false;
            }
            expected = expected.saturating_mul(size);
        }
    }
    true
}

/// Whether the strides are those of channels_last, ignoring dimensions of size 1; false without strides, as for composite
/// tensors.
pub fn is_channels_last(sizes: &[usize], strides: &[usize]) -> bool {
    if !(3..=5).contains(&sizes.len()) || sizes.len() != strides.len() {
        return false;
    }
    if sizes.contains(&0) {
        return true;
    }
    let mut expected = 1;
    let inner_to_outer = std::iter::once(1).chain((2..sizes.len()).rev()).chain(std::iter::once(0));
    for i in inner_to_outer {
        if sizes[i] != 1 {
            if strides[i] != expected {
                return false;
            }
            expected *= sizes[i];
        }
    }
    true
}

/// Whether the channels have the smallest stride, with or without gaps. Unlike in [`is_channels_last`], strides of
/// dimensions of size 1 count, so the format of a tensor with one channel or one pixel is known from its strides, unless it
/// has one of both.
pub fn orders_channels_last(sizes: &[usize], strides: &[usize]) -> bool {
    if !(3..=5).contains(&sizes.len()) || sizes.len() != strides.len() {
        return false;
    }
    // The minimum of the next stride, and the extent of the preceding dimensions.
    let (mut least, mut reach) = (1, 0usize);
    for i in std::iter::once(1).chain((2..sizes.len()).rev()) {
        if strides[i] < least {
            return false;
        }
        reach = reach.saturating_add(strides[i].saturating_mul(sizes[i].saturating_sub(1)));
        least = strides[i].max(reach.saturating_add(1));
    }
    // Equal strides are those of row-major order as well.
    least > strides[1] && (sizes[0] == 1 || strides[0] >= least)
}

/// Dense strides that preserve the order of dimensions in memory; `None` if that order is row-major, or if elements
/// overlap.
pub fn dense_strides(sizes: &[usize], strides: &[usize]) -> Option<Dims> {
    if orders_channels_last(sizes, strides) {
        return Some(channels_last_strides(sizes));
    }
    if sizes.contains(&0) || may_self_overlap(sizes, strides) {
        return None;
    }
    let mut order: SmallVec<[usize; 8]> = (0..sizes.len()).filter(|&i| sizes[i] != 1).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(strides[i]));
    if order.is_sorted() {
        return None;
    }
    // A dimension of size 1 follows the dimension before it in memory, as in row-major order.
    for i in (0..sizes.len()).filter(|&i| sizes[i] == 1) {
        let at = i
            .checked_sub(1)
            .and_then(|before| order.iter().position(|&d| d == before))
            .map_or(0, |at| at + 1);
        order.insert(at, i);
    }
    let mut dense = Dims::from_elem(1, sizes.len());
    let mut next = 1usize;
    for &i in order.iter().rev() {
        dense[i] = next;
        next = next.wrapping_mul(sizes[i]);
    }
    Some(dense)
}

/// Whether the tensor is non-overlapping and dense, in any order of dimensions; false without strides (composite
/// tensors).
pub fn is_dense(sizes: &[usize], strides: &[usize]) -> bool {
    if sizes.len() != strides.len() {
        return false;
    }
    let mut order: SmallVec<[usize; 8]> = (0..sizes.len()).filter(|&i| sizes[i] != 1).collect();
    order.sort_by_key(|&i| strides[i]);
    let mut expected = 1;
    for i in order {
        if sizes[i] == 0 {
            return true;
        }
        if strides[i] != expected {
            return false;
        }
        // Nonzero sizes cannot overflow: the elements are in memory. Otherwise a later size may be 0.
        expected = expected.wrapping_mul(sizes[i]);
    }
    true
}

/// Whether two elements may have the same offset: a stride of 0, or dimensions that interleave. False without strides, as
/// for composite tensors.
pub fn may_self_overlap(sizes: &[usize], strides: &[usize]) -> bool {
    if sizes.contains(&0) || sizes.len() != strides.len() {
        return false;
    }
    let mut order: SmallVec<[usize; 8]> = (0..sizes.len()).filter(|&i| sizes[i] != 1).collect();
    order.sort_by_key(|&i| strides[i]);
    let mut reach = 0;
    for i in order {
        if strides[i] <= reach {
            return true;
        }
        reach += strides[i] * (sizes[i] - 1);
    }
    false
}

/// The shape that both broadcast to.
///
/// # Errors
/// [`Error::Broadcast`] when a dimension differs and neither is 1.
pub fn broadcast(op: &'static str, a: &[usize], b: &[usize]) -> Result<Dims> {
    if a == b {
        return Ok(Dims::from_slice(a));
    }
    let ndim = a.len().max(b.len());
    let mut out = Dims::from_elem(1, ndim);
    for i in 1..=ndim {
        let x = if i <= a.len() { a[a.len() - i] } else { 1 };
        let y = if i <= b.len() { b[b.len() - i] } else { 1 };
        out[ndim - i] = match (x, y) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            (x, y) => {
                return Err(Error::Broadcast {
                    op,
                    left: a.into(),
                    right: b.into(),
                    dim: -(i as i64),
                    left_size: x,
                    right_size: y,
                });
            }
        };
    }
    Ok(out)
}

/// The strides of a tensor broadcast to `out`: 0 along expanded dimensions. `sizes` must be broadcastable to `out`.
pub fn expanded_strides(sizes: &[usize], strides: &[usize], out: &[usize]) -> Dims {
    let mut expanded = Dims::from_elem(0, out.len());
    let lead = out.len() - sizes.len();
    for i in 0..sizes.len() {
        if sizes[i] == out[lead + i] {
            expanded[lead + i] = strides[i];
        }
    }
    expanded
}

/// A dimension as an index from 0; -1 is the last. A 0-d tensor is treated as having one dimension.
///
/// # Errors
/// [`Error::Dim`] if it is out of range.
#[inline]
pub fn wrap_dim(op: &'static str, dim: i64, ndim: usize) -> Result<usize> {
    let n = ndim.max(1) as i64;
    if dim < -n || dim >= n {
        return Err(no_dim(op, dim, ndim));
    }
    Ok(if dim < 0 { (dim + n) as usize } else { dim as usize })
}

#[cold]
fn no_dim(op: &'static str, dim: i64, ndim: usize) -> Error {
    Error::Dim { op, dim, ndim }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn overflow_is_an_error_and_a_zero_size_is_not() {
        assert!(matches!(numel("t", &[usize::MAX, 2]), Err(Error::SizeOverflow { .. })));
        assert!(matches!(numel("t", &[1 << 40, 1 << 40]), Err(Error::SizeOverflow { .. })));
        assert_eq!(numel("t", &[0, usize::MAX]).unwrap(), 0);
        assert_eq!(numel("t", &[]).unwrap(), 1);
    }

    #[test]
    fn dims_wrap_and_refuse() {
        assert_eq!(wrap_dim("t", -1, 3).unwrap(), 2);
        assert_eq!(wrap_dim("t", 0, 0).unwrap(), 0);
        for bad in [3, -4] {
            assert!(matches!(wrap_dim("t", bad, 3), Err(Error::Dim { .. })));
        }
    }

    proptest! {
        #[test]
        fn broadcasting_is_symmetric_and_contains_both(
            a in prop::collection::vec(prop_oneof![Just(1usize), 1usize..4], 0..5),
            b in prop::collection::vec(prop_oneof![Just(1usize), 1usize..4], 0..5),
        ) {
            match (broadcast("t", &a, &b), broadcast("t", &b, &a)) {
                (Ok(x), Ok(y)) => {
                    prop_assert_eq!(&x, &y);
                    for shape in [&a, &b] {
                        let lead = x.len() - shape.len();
                        for i in 0..shape.len() {
                            prop_assert!(shape[i] == 1 || shape[i] == x[lead + i]);
                        }
                    }
                }
                (Err(_), Err(_)) => {}
                _ => prop_assert!(false, "one order broadcasts and the other does not"),
            }
        }

        #[test]
        fn slices_keep_their_order_without_gaps(
            sizes in prop::collection::vec(1usize..5, 0..6),
            turn in 0usize..120,
            gap in 1usize..4,
        ) {
            // The strides of a permutation of a larger row-major tensor.
            let mut order: Vec<usize> = (0..sizes.len()).collect();
            let mut turn = turn;
            for i in (1..order.len()).rev() {
                order.swap(i, turn % (i + 1));
                turn /= i + 1;
            }
            let (mut strides, mut next) = (vec![0; sizes.len()], 1);
            for &i in order.iter().rev() {
                strides[i] = next;
                next *= sizes[i] * gap;
            }
            let made = dense_strides(&sizes, &strides).unwrap_or_else(|| contiguous_strides(&sizes));
            prop_assert!(is_dense(&sizes, &made));
            for a in (0..sizes.len()).filter(|&i| sizes[i] > 1) {
                for b in (0..sizes.len()).filter(|&i| sizes[i] > 1) {
                    prop_assert_eq!(strides[a] < strides[b], made[a] < made[b]);
                }
            }
        }

        #[test]
        fn strides_say_which_format_is_meant(sizes in prop::collection::vec(1usize..4, 3..6)) {
            let (c, l) = (contiguous_strides(&sizes), channels_last_strides(&sizes));
            prop_assert!(!orders_channels_last(&sizes, &c));
            prop_assert_eq!(orders_channels_last(&sizes, &l), c != l);
            let gaps = |strides: &Dims| strides.iter().map(|s| 3 * s).collect::<Dims>();
            prop_assert_eq!(orders_channels_last(&sizes, &gaps(&l)), c != l);
            prop_assert!(!orders_channels_last(&sizes, &gaps(&c)));
        }

        #[test]
        fn formats_are_recognised(sizes in prop::collection::vec(0usize..5, 0..6)) {
            let c = contiguous_strides(&sizes);
            prop_assert!(is_contiguous(&sizes, &c) && is_dense(&sizes, &c));
            prop_assert!(!may_self_overlap(&sizes, &c));
            if (3..=5).contains(&sizes.len()) {
                let l = channels_last_strides(&sizes);
                prop_assert!(is_channels_last(&sizes, &l) && is_dense(&sizes, &l));
            }
        }
    }
}
