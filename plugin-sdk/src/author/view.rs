//! Typed, strided views of tensor memory.
//!
//! The host may pass an output that is exactly one of the arguments (in-place calls), so a view reads and writes single
//! elements through raw pointers. A reference to elements, which must not be aliased, is returned only after a check:
//! [`View::as_slice`] if no output of the call overlaps the view's memory, [`ViewMut::as_mut_slice`] if no argument does. Views
//! are neither `Send` nor `Sync`, because an element read on one thread could be written on another; slices are, and so is
//! [`Lanes`], whose use is `unsafe`.

use super::element::{Element, ElementType, Plain};
use super::error::Error;
use super::extent::{Extent, entries, overlaps};
use super::strided::{Coordinates, Strided};
use super::tensor::{Origin, OwnedTensor, Tensor, is_an_output};
use crate::abi::codes::tag;
use crate::abi::tensor::{RawArg, RawTensor};
use std::marker::PhantomData;

/// When the memory of a [`View`] may be borrowed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reads<'a> {
    /// Allowed unless one of these outputs overlaps the memory.
    UnlessWritten(&'a [*const RawTensor]),
    /// Always: the memory is uniquely owned.
    Alone,
    /// Never allowed: the memory may be shared.
    Shared,
}

/// When the memory of a [`ViewMut`] may be borrowed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Writes<'a> {
    /// Allowed unless one of these arguments overlaps the memory.
    UnlessRead(&'a [RawArg]),
    /// Always: the memory is uniquely owned.
    Alone,
}

impl<'a> Tensor<'a> {
    /// A typed, read-only view. Returns an error if the dtype differs, or if the tensor is composite, an output (see
    /// [`Call::out`](super::Call::out)), or in memory that the host cannot read.
    #[inline(always)]
    pub fn view<T: Element>(&self) -> Result<View<'a, T>, Error> {
        let reads = match self.origin {
            Origin::Argument(outputs) => Reads::UnlessWritten(outputs),
            Origin::Fresh => Reads::Alone,
            Origin::Shared => Reads::Shared,
            Origin::Output => return Err(is_an_output()),
        };
        self.check(ElementType::of::<T>())?;
        Ok(View::new(*self, reads))
    }

    /// As [`Tensor::view`], for the bits of elements whose dtype may differ from `T` if it has the same size: for integers
    /// whose sign is irrelevant, as in sums that wrap, and for elements that are only moved. Returns an error if the size
    /// differs.
    pub fn view_bits<T: Plain>(&self) -> Result<View<'a, T>, Error> {
        let reads = match self.origin {
            Origin::Argument(outputs) => Reads::UnlessWritten(outputs),
            Origin::Fresh => Reads::Alone,
            Origin::Shared => Reads::Shared,
            Origin::Output => return Err(is_an_output()),
        };
        self.check(ElementType::bits_of::<T>(self.dtype()))?;
        Ok(View::new(*self, reads))
    }
}

impl OwnedTensor {
    /// A typed, read-only view.
    pub fn view<T: Element>(&self) -> Result<View<'_, T>, Error> {
        self.tensor().view()
    }

    /// A typed view for writing. Returns an error if another op returned or had access to this tensor, since other tensors
    /// may then share its memory.
    pub fn view_mut<T: Element>(&mut self) -> Result<ViewMut<'_, T>, Error> {
        Ok(ViewMut::new(self.own(ElementType::of::<T>())?, Writes::Alone))
    }

    /// As [`OwnedTensor::view_mut`], for the bits of elements whose dtype may differ from `T` if it has the same size: see
    /// [`Tensor::view_bits`].
    pub fn view_bits_mut<T: Plain>(&mut self) -> Result<ViewMut<'_, T>, Error> {
        Ok(ViewMut::new(self.own(ElementType::bits_of::<T>(self.tensor().dtype()))?, Writes::Alone))
    }
}

/// Read-only elements of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T> {
    pub(crate) data: *const T,
    tensor: Tensor<'a>,
    reads: Reads<'a>,
}

/// The offset in elements of `index`, or `None` if it is out of range.
#[inline]
fn offset(sizes: &[i64], strides: &[i64], index: &[usize]) -> Option<usize> {
    if index.len() != sizes.len() {
        return None;
    }
    let mut at = 0;
    for ((&i, &size), &stride) in index.iter().zip(sizes).zip(strides) {
        if i as u64 >= size as u64 {
            return None;
        }
        at += i * stride as usize;
    }
    Some(at)
}

/// Whether the elements are dense, in any order of the dimensions.
fn is_dense(sizes: &[i64], strides: &[i64]) -> bool {
    Strided::new(sizes, [strides]).is_ok_and(|elements| elements.is_contiguous())
}

impl<'a, T: Element> View<'a, T> {
    #[inline(always)]
    pub(crate) fn new(tensor: Tensor<'a>, reads: Reads<'a>) -> Self {
        View { data: tensor.raw.data.cast_const().cast(), tensor, reads }
    }

    /// The raw form of the tensor.
    #[inline(always)]
    pub fn raw(&self) -> &'a RawTensor {
        self.tensor.raw
    }

    /// The sizes, in elements.
    #[inline]
    pub fn sizes(&self) -> &'a [i64] {
        self.tensor.sizes()
    }

    /// The strides, in elements.
    #[inline]
    pub fn strides(&self) -> &'a [i64] {
        self.tensor.strides()
    }

    /// The number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.tensor.numel()
    }

    /// Whether the view is contiguous (row-major, without gaps).
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.tensor.is_contiguous()
    }

    /// The address of element (0, ..., 0), for reads in the range that sizes and strides state.
    #[inline]
    pub fn as_ptr(&self) -> *const T {
        self.data
    }

    /// The element at `index`, or `None` if it is out of range.
    #[inline]
    pub fn get(&self, index: &[usize]) -> Option<T> {
        let at = offset(self.sizes(), self.strides(), index)?;
        // SAFETY: `at` is the offset of an index within the sizes, where the host guarantees an element;
        // `Tensor::check` made sure that the memory is the host's.
        Some(unsafe { T::load(self.data.add(at)) })
    }

    /// The elements in row-major order, for any strides.
    pub fn iter(&self) -> Iter<'a, T> {
        Iter { view: *self, index: Coordinates::new(self.ndim()), left: self.numel() }
    }

    /// The number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.tensor.ndim()
    }

    /// Whether a shared borrow of the elements is sound: no output of the call overlaps them.
    fn unwritten(&self) -> bool {
        match self.reads {
            Reads::Alone => true,
            Reads::Shared => false,
            Reads::UnlessWritten(outputs) => {
                let range = self.tensor.range();
                // SAFETY: the entries are null or valid tensors of the call; the host upholds this.
                !outputs.iter().any(|&o| unsafe { overlaps(range, o) })
            }
        }
    }
}

impl<'a, T: Plain> View<'a, T> {
    /// The elements as a slice, if they are contiguous and no output of the call overlaps them (as in an in-place call).
    /// `contiguous` of the crate `keyway-cpu-loops` copies if this returns `None`.
    #[inline]
    pub fn as_slice(&self) -> Option<&'a [T]> {
        if !self.is_contiguous() || !self.unwritten() {
            return None;
        }
        // SAFETY: the host guarantees `numel` elements in a row; every bit pattern is a value of a `Plain` type;
        // `unwritten` returned that nothing in this call writes them.
        Some(unsafe { entries(self.data, self.numel()) })
    }

    /// The elements as a slice in memory order, if they are dense in any order of the dimensions (such as channels_last),
    /// and no output of the call overlaps them. Tensors of equal sizes and strides have the same element order.
    pub fn as_dense_slice(&self) -> Option<&'a [T]> {
        if !is_dense(self.sizes(), self.strides()) || !self.unwritten() {
            return None;
        }
        // SAFETY: the host guarantees an element for each index, and dense ones are `numel` in a row from the first; every
        // bit pattern is a value of a `Plain` type; `unwritten` returned that nothing in this call writes them.
        Some(unsafe { entries(self.data, self.numel()) })
    }
}

impl<'a, T: Element> IntoIterator for View<'a, T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The elements of a [`View`] in row-major order.
#[derive(Clone, Debug)]
pub struct Iter<'a, T> {
    view: View<'a, T>,
    index: Coordinates,
    left: usize,
}

impl<T: Element> Iterator for Iter<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        let at = self.index.step(self.view.sizes(), self.view.strides());
        // SAFETY: `at` is the offset of an index within the sizes, as in `View::get`.
        Some(unsafe { T::load(self.view.data.add(at)) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T: Element> ExactSizeIterator for Iter<'_, T> {}

/// The elements of an output or an owned tensor, for writing. At most one exists per output.
#[derive(Debug)]
pub struct ViewMut<'a, T> {
    pub(crate) data: *mut T,
    tensor: Tensor<'a>,
    writes: Writes<'a>,
    _exclusive: PhantomData<&'a mut T>,
}

impl<'a, T: Element> ViewMut<'a, T> {
    #[inline(always)]
    pub(crate) fn new(tensor: Tensor<'a>, writes: Writes<'a>) -> Self {
        ViewMut { data: tensor.raw.data.cast(), tensor, writes, _exclusive: PhantomData }
    }

    /// The raw form of the tensor.
    #[inline(always)]
    pub fn raw(&self) -> &'a RawTensor {
        self.tensor.raw
    }

    /// The same view with a shorter lifetime, so that it can be passed more than once.
    #[inline]
    pub fn reborrow(&mut self) -> ViewMut<'_, T> {
        ViewMut { data: self.data, tensor: self.tensor, writes: self.writes, _exclusive: PhantomData }
    }

    /// The sizes, in elements.
    #[inline]
    pub fn sizes(&self) -> &'a [i64] {
        self.tensor.sizes()
    }

    /// The strides, in elements.
    #[inline]
    pub fn strides(&self) -> &'a [i64] {
        self.tensor.strides()
    }

    /// The number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.tensor.ndim()
    }

    /// The number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.tensor.numel()
    }

    /// Whether the view is contiguous (row-major, without gaps).
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.tensor.is_contiguous()
    }

    /// The address of element (0, ..., 0), for reads and writes in the range that sizes and strides state.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.data
    }

    /// The element at `index`, or `None` if it is out of range.
    #[inline]
    pub fn get(&self, index: &[usize]) -> Option<T> {
        let at = offset(self.sizes(), self.strides(), index)?;
        // SAFETY: as in `View::get`.
        Some(unsafe { T::load(self.data.add(at)) })
    }

    /// Writes the element at `index`; `None` if it is out of range.
    #[inline]
    pub fn set(&mut self, index: &[usize], value: T) -> Option<()> {
        let at = offset(self.sizes(), self.strides(), index)?;
        // SAFETY: the offset is that of an element of the output. No slice of an argument covers it
        // (`View::as_slice` refuses), and `&mut self` excludes one of the output.
        unsafe { self.data.add(at).write(value) };
        Some(())
    }

    /// Writes every element, in row-major order of the logical index, from an iterator; stops at its end.
    pub fn assign(&mut self, values: impl IntoIterator<Item = T>) {
        let mut index = Coordinates::new(self.ndim());
        for value in values.into_iter().take(self.numel()) {
            let at = index.step(self.sizes(), self.strides());
            // SAFETY: as in `set`.
            unsafe { self.data.add(at).write(value) };
        }
    }

    /// A handle for writes from several threads.
    #[inline]
    pub fn lanes(&mut self) -> Lanes<'_, T> {
        Lanes { data: self.data, _borrow: PhantomData }
    }

    /// Whether an exclusive borrow of the elements is sound: no argument of the call overlaps them.
    fn unread(&self) -> bool {
        let args = match self.writes {
            Writes::Alone => return true,
            Writes::UnlessRead(args) => args,
        };
        let range = self.tensor.range();
        if range == Extent::Nothing {
            return true;
        }
        !args.iter().any(|arg| match arg.tag {
            // SAFETY: the value of a TENSOR argument is a valid tensor; the host upholds this.
            tag::TENSOR => unsafe { overlaps(range, arg.value as *const RawTensor) },
            tag::TENSORS => {
                // SAFETY: the value of a TENSORS argument is `len` valid tensors; the host upholds this.
                let list = unsafe { entries(arg.value as *const *const RawTensor, arg.len as usize) };
                // SAFETY: as above.
                list.iter().any(|&t| unsafe { overlaps(range, t) })
            }
            _ => false,
        })
    }
}

impl<'a, T: Plain> ViewMut<'a, T> {
    /// The elements as a slice, if they are contiguous and no argument of the call overlaps them (as in an in-place call).
    /// Their initial content is unspecified. `contiguous_out` of the crate `keyway-cpu-loops` uses a buffer if this returns
    /// `None`.
    #[inline]
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        self.reborrow().into_mut_slice().ok()
    }

    /// The elements as a slice in memory order: see [`View::as_dense_slice`]. `None` if there are gaps, or if an
    /// argument of the call overlaps them.
    pub fn as_dense_mut_slice(&mut self) -> Option<&mut [T]> {
        if !is_dense(self.sizes(), self.strides()) || !self.unread() {
            return None;
        }
        if self.numel() == 0 {
            return Some(&mut []);
        }
        // SAFETY: the host guarantees an element for each index, and dense ones are `numel` in a row from the first; every
        // bit pattern is a value of a `Plain` type; no argument overlaps them, `Call::out` returns each output once, and
        // `&mut self` excludes a second slice.
        Some(unsafe { std::slice::from_raw_parts_mut(self.data, self.numel()) })
    }

    /// As [`ViewMut::as_mut_slice`], for the view's whole lifetime; returns the view if this is not possible.
    #[inline]
    pub fn into_mut_slice(self) -> Result<&'a mut [T], Self> {
        if !self.is_contiguous() || !self.unread() {
            return Err(self);
        }
        if self.numel() == 0 {
            return Ok(&mut []);
        }
        // SAFETY: the host guarantees `numel` elements in a row; every bit pattern is a value of a `Plain` type; no
        // argument overlaps them, `Call::out` returns each output once, and `self` is used up.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.data, self.numel()) })
    }
}

/// The address of elements that several threads access concurrently, each its own elements. Also for reads.
#[derive(Debug)]
pub struct Lanes<'a, T> {
    data: *mut T,
    _borrow: PhantomData<&'a mut T>,
}

impl<T> Clone for Lanes<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Lanes<'_, T> {}

// SAFETY: the type only carries an address; each access is `unsafe`, and its caller upholds disjointness.
unsafe impl<T: Send> Send for Lanes<'_, T> {}
// SAFETY: as for Send.
unsafe impl<T: Send> Sync for Lanes<'_, T> {}

impl<'a, T> Lanes<'a, T> {
    /// Wraps an address so that other threads may use it.
    ///
    /// # Safety
    /// `data` must be valid for `'a` in the range that the caller then uses.
    pub unsafe fn new(data: *mut T) -> Self {
        Lanes { data, _borrow: PhantomData }
    }

    /// The address.
    #[inline(always)]
    pub fn as_ptr(self) -> *mut T {
        self.data
    }

    /// Reads the element at `offset`.
    ///
    /// # Safety
    /// The element must exist, and no other thread may write it concurrently; the caller upholds this.
    #[inline(always)]
    pub unsafe fn read(self, offset: usize) -> T
    where
        T: Element,
    {
        // SAFETY: the caller guarantees the element.
        unsafe { T::load(self.data.add(offset)) }
    }

    /// Writes the element at `offset`.
    ///
    /// # Safety
    /// The element must exist, and no other thread may access it concurrently; the caller upholds this.
    #[inline(always)]
    pub unsafe fn write(self, offset: usize, value: T) {
        // SAFETY: the caller guarantees the element.
        unsafe { self.data.add(offset).write(value) };
    }

    /// The elements `offset..offset + len`.
    ///
    /// # Safety
    /// They must be valid, initialised as `T`, and not accessed otherwise for `'a`; the caller upholds this.
    #[inline(always)]
    pub unsafe fn slice_mut(self, offset: usize, len: usize) -> &'a mut [T] {
        // SAFETY: the caller guarantees the elements and their exclusive use.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(offset), len) }
    }
}
