//! Accessors: elements of strided host memory by their indices, as fast as slices.
//!
//! Ops write through shared handles, so a reference into the memory of a tensor is sound only if no other handle can write:
//! [`AccessorMut`] borrows a unique handle, [`AccessorRef`] a unique handle or read-only memory. [`Accessor`] shares the
//! memory and only returns copies of elements, as `Cell` does.

use super::bytes::Element;
use super::elements::StridedElements;
use super::{Shared, Storage};
use crate::base::dims;
use crate::base::error::{Error, Result};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};
use std::ptr::NonNull;

/// The address, sizes and strides of the elements: all within memory that the host reads and that lives as long as the
/// accessor, aligned to `T`.
struct Strided<T, const N: usize> {
    first: NonNull<T>,
    sizes: [usize; N],
    strides: [usize; N],
}

impl<T, const N: usize> Clone for Strided<T, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const N: usize> Copy for Strided<T, N> {}

impl<T: Element, const N: usize> Strided<T, N> {
    fn of(op: &'static str, storage: &Storage, elements: StridedElements<'_>) -> Result<Strided<T, N>> {
        let StridedElements { offset, sizes, strides, element } = elements;
        let value = |argument, expected: String, got: String| Error::Value { op, argument, expected, got };
        let (Ok(own_sizes), Ok(own_strides)) = (<[usize; N]>::try_from(sizes), strides.try_into()) else {
            let n = sizes.len();
            return Err(value("N", format!("{n}, as the tensor has {n} dimensions"), N.to_string()));
        };
        storage.quiet_for_host(op)?;
        let size = size_of::<T>();
        let within = match dims::extent(offset, sizes, strides) {
            Some((0, _)) => true,
            Some((_, end)) => end.checked_mul(size).is_some_and(|end| end <= storage.bytes()),
            None => false,
        };
        if !within || element != size {
            let expected = format!("elements of {element} bytes within {storage:?}");
            let got = format!("{size} bytes, sizes {sizes:?}, strides {strides:?}, offset {offset}");
            return Err(value("T", expected, got));
        }
        let first = storage.pointer().as_ptr().wrapping_add(offset.wrapping_mul(size)).cast::<T>();
        let first = match NonNull::new(first) {
            _ if sizes.contains(&0) => NonNull::dangling(),
            Some(first) if first.is_aligned() => first,
            _ => {
                let (align, dtype) = (align_of::<T>(), T::DTYPE);
                let expected = format!("aligned to {align} bytes for {dtype}; make a `copy()` of it");
                return Err(value("data", expected, format!("{first:p}")));
            }
        };
        Ok(Strided { first, sizes: own_sizes, strides: own_strides })
    }

    /// The offset of an element from the first one, unchecked.
    #[inline(always)]
    fn distance(&self, index: [usize; N]) -> usize {
        let mut distance = 0usize;
        for (i, stride) in index.into_iter().zip(self.strides) {
            distance = distance.wrapping_add(i.wrapping_mul(stride));
        }
        distance
    }

    #[inline(always)]
    fn find(&self, index: [usize; N]) -> Option<NonNull<T>> {
        let mut inside = true;
        for (i, size) in index.into_iter().zip(self.sizes) {
            inside &= i < size;
        }
        // SAFETY: the index is one of an element, and all elements are within the memory, see `of`.
        inside.then(|| unsafe { self.first.add(self.distance(index)) })
    }

    /// The elements of the last dimension at an index of the dimensions before it, if they are contiguous.
    #[inline]
    fn row<const M: usize>(&self, at: [usize; M]) -> Option<(NonNull<T>, usize)> {
        const { assert!(M + 1 == N, "a row's index has one number less than an element's") };
        let mut index = [0; N];
        index[..M].copy_from_slice(&at);
        let n = self.sizes[M];
        if n > 1 && self.strides[M] != 1 {
            return None;
        }
        match n {
            0 if at.iter().zip(self.sizes).all(|(&i, size)| i < size) => Some((NonNull::dangling(), 0)),
            _ => self.find(index).map(|first| (first, n)),
        }
    }

    /// All elements, if the tensor is contiguous.
    fn whole(&self) -> Option<(NonNull<T>, usize)> {
        dims::is_contiguous(&self.sizes, &self.strides).then(|| (self.first, dims::count(&self.sizes)))
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn outside(index: &[usize], sizes: &[usize]) -> ! {
    panic!("index {index:?} is out of range for a tensor of shape {sizes:?}")
}

/// Reads elements of a tensor that may be shared and changed, by copy, never by reference.
///
/// Each `get` reads the current value. As with every read of a tensor, the program must synchronise with other threads that
/// change it; the accessor itself is not `Send`.
pub struct Accessor<'a, T, const N: usize> {
    at: Strided<T, N>,
    _shares: PhantomData<&'a Cell<T>>,
}

impl<T, const N: usize> Clone for Accessor<'_, T, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const N: usize> Copy for Accessor<'_, T, N> {}

impl<'a, T: Element, const N: usize> Accessor<'a, T, N> {
    /// Creates an accessor of these elements.
    ///
    /// # Errors
    /// `Value` for a number of dimensions that is not `N`, elements outside the storage or not aligned; `NotOnHost`;
    /// the device's error.
    pub fn new(op: &'static str, storage: &'a Storage, elements: StridedElements<'_>) -> Result<Self> {
        Ok(Accessor { at: Strided::of(op, storage, elements)?, _shares: PhantomData })
    }

    /// Sizes.
    pub fn sizes(&self) -> [usize; N] {
        self.at.sizes
    }

    /// Strides in elements.
    pub fn strides(&self) -> [usize; N] {
        self.at.strides
    }

    /// Returns the element at this index; `None` if out of range.
    #[inline(always)]
    pub fn get(&self, index: [usize; N]) -> Option<T> {
        // SAFETY: the address of an element in live memory that the host can read; every bit pattern is valid for `T`.
        self.at.find(index).map(|element_at| unsafe { element_at.read() })
    }

    /// Returns the element at this index.
    ///
    /// # Safety
    /// Each number of the index must be below the size of its dimension. The caller upholds this.
    #[inline(always)]
    pub unsafe fn get_unchecked(&self, index: [usize; N]) -> T {
        // SAFETY: as in `get`; the caller has checked the index.
        unsafe { self.at.first.add(self.at.distance(index)).read() }
    }

    /// Returns the same elements by reference, with `a[[i, j]]`, rows as slices, and `Send`.
    ///
    /// ```
    /// use keyway_dispatcher::memory::{Accessor, StridedElements, Storage};
    /// # fn main() -> keyway_dispatcher::Result<()> {
    /// let storage = Storage::from_vec(vec![1i32, 2, 3, 4]);
    /// let elements = StridedElements { offset: 0, sizes: &[2, 2], strides: &[2, 1], element: 4 };
    /// // SAFETY: the storage is uniquely owned.
    /// let a = unsafe { Accessor::<i32, 2>::new("example", &storage, elements)?.assume_unwritten() };
    /// assert_eq!((a[[1, 0]], a.row([0])), (3, Some(&[1, 2][..])));
    /// # Ok(()) }
    /// ```
    ///
    /// # Safety
    /// The elements must not be written while the result or a reference from it is used: by no in-place or `out=` op on any
    /// tensor that shares the storage, on any thread, nor by work enqueued before. The caller upholds this.
    pub unsafe fn assume_unwritten(self) -> AccessorRef<'a, T, N> {
        AccessorRef { at: self.at, _borrows: PhantomData }
    }
}

/// Reads elements of a tensor that is not written while the accessor lives.
pub struct AccessorRef<'a, T, const N: usize> {
    at: Strided<T, N>,
    _borrows: PhantomData<&'a [T]>,
}

// SAFETY: as a `&[T]`.
unsafe impl<T: Sync, const N: usize> Send for AccessorRef<'_, T, N> {}
// SAFETY: as a `&[T]`.
unsafe impl<T: Sync, const N: usize> Sync for AccessorRef<'_, T, N> {}

impl<T, const N: usize> Clone for AccessorRef<'_, T, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const N: usize> Copy for AccessorRef<'_, T, N> {}

impl<'a, T: Element, const N: usize> AccessorRef<'a, T, N> {
    /// Creates an accessor of read-only memory.
    pub(crate) fn of_read_only(
        op: &'static str,
        storage: &'a Storage,
        elements: StridedElements<'_>,
    ) -> Result<AccessorRef<'a, T, N>> {
        let at = Strided::of(op, storage, elements)?;
        if !storage.is_read_only() {
            return Err(storage.held(op, 0));
        }
        Ok(AccessorRef { at, _borrows: PhantomData })
    }

    /// An accessor of uniquely owned memory.
    pub(crate) fn of_exclusive(
        op: &'static str,
        storage: &'a mut Storage,
        elements: StridedElements<'_>,
    ) -> Result<AccessorRef<'a, T, N>> {
        storage.check_private(op)?;
        if Shared::get_mut(&mut storage.0).is_none() {
            return Err(storage.held(op, 0));
        }
        Ok(AccessorRef { at: Strided::of(op, storage, elements)?, _borrows: PhantomData })
    }

    /// Sizes.
    pub fn sizes(&self) -> [usize; N] {
        self.at.sizes
    }

    /// Strides in elements.
    pub fn strides(&self) -> [usize; N] {
        self.at.strides
    }

    /// Returns the element at this index; `None` if out of range.
    #[inline(always)]
    pub fn get(&self, index: [usize; N]) -> Option<&'a T> {
        // SAFETY: the address of an element in memory that lives for `'a` and is not written, see the constructors.
        self.at.find(index).map(|element_at| unsafe { element_at.as_ref() })
    }

    /// Returns the element at this index.
    ///
    /// # Safety
    /// Each number of the index must be below the size of its dimension. The caller upholds this.
    #[inline(always)]
    pub unsafe fn get_unchecked(&self, index: [usize; N]) -> &'a T {
        // SAFETY: as in `get`; the caller has checked the index.
        unsafe { self.at.first.add(self.at.distance(index)).as_ref() }
    }

    /// Returns the elements of the last dimension at an index of the dimensions before it; `None` if the index is out of
    /// range, or if they are not contiguous.
    #[inline]
    pub fn row<const M: usize>(&self, index: [usize; M]) -> Option<&'a [T]> {
        // SAFETY: contiguous elements, as in `get`.
        self.at.row(index).map(|(first, n)| unsafe { std::slice::from_raw_parts(first.as_ptr(), n) })
    }

    /// Returns all elements; `None` if the tensor is not contiguous.
    pub fn as_slice(&self) -> Option<&'a [T]> {
        // SAFETY: contiguous elements, as in `get`.
        self.at.whole().map(|(first, n)| unsafe { std::slice::from_raw_parts(first.as_ptr(), n) })
    }
}

impl<T: Element, const N: usize> Index<[usize; N]> for AccessorRef<'_, T, N> {
    type Output = T;

    /// # Panics
    /// An index out of range, as a slice's.
    #[inline(always)]
    #[track_caller]
    fn index(&self, index: [usize; N]) -> &T {
        match self.get(index) {
            Some(element) => element,
            None => outside(&index, &self.at.sizes),
        }
    }
}

/// Reads and writes elements of a tensor whose memory is uniquely owned.
pub struct AccessorMut<'a, T, const N: usize> {
    at: Strided<T, N>,
    _borrows: PhantomData<&'a mut [T]>,
}

// SAFETY: as a `&mut [T]`.
unsafe impl<T: Send, const N: usize> Send for AccessorMut<'_, T, N> {}
// SAFETY: as a `&mut [T]`.
unsafe impl<T: Sync, const N: usize> Sync for AccessorMut<'_, T, N> {}

impl<'a, T: Element, const N: usize> AccessorMut<'a, T, N> {
    /// Creates an accessor of uniquely owned memory. Counts as one change of the storage.
    pub(crate) fn of_exclusive(
        op: &'static str,
        storage: &'a mut Storage,
        elements: StridedElements<'_>,
    ) -> Result<AccessorMut<'a, T, N>> {
        storage.check_writable(op)?;
        storage.check_private(op)?;
        if Shared::get_mut(&mut storage.0).is_none() {
            return Err(storage.held(op, 0));
        }
        if dims::may_self_overlap(elements.sizes, elements.strides) {
            return Err(Error::Overlap { op, with: "itself" });
        }
        let at = Strided::of(op, storage, elements)?;
        storage.bump_version();
        Ok(AccessorMut { at, _borrows: PhantomData })
    }

    /// Sizes.
    pub fn sizes(&self) -> [usize; N] {
        self.at.sizes
    }

    /// Strides in elements.
    pub fn strides(&self) -> [usize; N] {
        self.at.strides
    }

    /// Returns a read-only accessor of the same elements.
    pub fn as_ref(&self) -> AccessorRef<'_, T, N> {
        AccessorRef { at: self.at, _borrows: PhantomData }
    }

    /// Returns the element at this index; `None` if out of range.
    #[inline(always)]
    pub fn get(&self, index: [usize; N]) -> Option<&T> {
        // SAFETY: the address of an element in memory that lives for `'a` and that only this borrow reaches.
        self.at.find(index).map(|element_at| unsafe { element_at.as_ref() })
    }

    /// Returns the element at this index mutably; `None` if out of range.
    #[inline(always)]
    pub fn get_mut(&mut self, index: [usize; N]) -> Option<&mut T> {
        // SAFETY: as in `get`; elements do not overlap, and this borrow is the only one.
        self.at.find(index).map(|mut element_at| unsafe { element_at.as_mut() })
    }

    /// Returns the element at this index.
    ///
    /// # Safety
    /// Each number of the index must be below the size of its dimension. The caller upholds this.
    #[inline(always)]
    pub unsafe fn get_unchecked(&self, index: [usize; N]) -> &T {
        // SAFETY: as in `get`; the caller has checked the index.
        unsafe { self.at.first.add(self.at.distance(index)).as_ref() }
    }

    /// Returns the element at this index mutably.
    ///
    /// # Safety
    /// Each number of the index must be below the size of its dimension. The caller upholds this.
    #[inline(always)]
    pub unsafe fn get_unchecked_mut(&mut self, index: [usize; N]) -> &mut T {
        // SAFETY: as in `get_mut`; the caller has checked the index.
        unsafe { self.at.first.add(self.at.distance(index)).as_mut() }
    }

    /// Returns the elements of the last dimension at an index of the dimensions before it, mutably; `None` if the index is
    /// out of range, or if they are not contiguous. For reading see [`AccessorMut::as_ref`].
    #[inline]
    pub fn row_mut<const M: usize>(&mut self, index: [usize; M]) -> Option<&mut [T]> {
        // SAFETY: contiguous elements, as in `get_mut`.
        self.at.row(index).map(|(first, n)| unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), n) })
    }

    /// Returns all elements; `None` if the tensor is not contiguous.
    pub fn into_slice(self) -> Option<&'a mut [T]> {
        // SAFETY: contiguous elements, as in `get_mut`; the accessor is consumed.
        self.at.whole().map(|(first, n)| unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), n) })
    }
}

impl<T: Element, const N: usize> Index<[usize; N]> for AccessorMut<'_, T, N> {
    type Output = T;

    /// # Panics
    /// An index out of range, as a slice's.
    #[inline(always)]
    #[track_caller]
    fn index(&self, index: [usize; N]) -> &T {
        match self.get(index) {
            Some(element) => element,
            None => outside(&index, &self.at.sizes),
        }
    }
}

impl<T: Element, const N: usize> IndexMut<[usize; N]> for AccessorMut<'_, T, N> {
    /// # Panics
    /// An index out of range, as a slice's.
    #[inline(always)]
    #[track_caller]
    fn index_mut(&mut self, index: [usize; N]) -> &mut T {
        let sizes = self.at.sizes;
        match self.get_mut(index) {
            Some(element) => element,
            None => outside(&index, &sizes),
        }
    }
}
