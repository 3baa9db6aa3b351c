//! Constructors of tensors: each is written in its final location, and checked to be within its storage.

use super::geometry::Geometry;
use super::{Attrs, Composite, Format, OwnRaw, TensorImpl, TensorRef, ViewOf, ViewOrigin};
use crate::base::dims::{self, Dims};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::key::{Device, DispatchKey, KeySet, Layout, local_keys};
use crate::memory::{Extension, Shared, Storage, shared};
use std::marker::PhantomPinned;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[cold]
fn no_view(base: &TensorImpl) -> Error {
    Error::Layout { op: "view", layout: base.layout(), reason: "has no strides to view" }
}

/// The range of a strided tensor in its storage.
struct Span<'a> {
    offset: usize,
    sizes: &'a [usize],
    strides: &'a [usize],
    dtype: DType,
}

impl Span<'_> {
    /// The number of elements, if all of them are within the storage.
    #[inline(always)]
    fn numel_within(&self, op: &'static str, storage: &Storage) -> Result<usize> {
        match dims::extent(self.offset, self.sizes, self.strides) {
            Some((numel, end)) if ends_within(storage, numel, end, self.dtype) => Ok(numel),
            // Sizes whose product overflows have their own error.
            _ => match dims::numel(op, self.sizes)? {
                0 if self.sizes.len() == self.strides.len() => Ok(0),
                _ => Err(self.outside(op, storage)),
            },
        }
    }

    #[cold]
    fn outside(&self, op: &'static str, storage: &Storage) -> Error {
        let Span { offset, sizes, strides, dtype } = self;
        Error::Value {
            op,
            argument: "strides",
            expected: format!("elements within the storage's {} bytes", storage.bytes()),
            got: format!("sizes {sizes:?}, strides {strides:?}, offset {offset}, dtype {dtype}"),
        }
    }
}

/// Whether a storage holds elements up to `end`.
#[inline(always)]
fn ends_within(storage: &Storage, numel: usize, end: usize, dtype: DType) -> bool {
    numel == 0 || end.checked_mul(dtype.size()).is_some_and(|end| end <= storage.bytes())
}

/// Adds the inference key to tensors created in inference mode; `included` are the thread's keys.
#[inline(always)]
fn birth_keys(included: KeySet) -> u64 {
    included.intersect(KeySet::of(DispatchKey::INFERENCE)).0
}

impl TensorImpl {
    /// A strided tensor over part of a storage.
    ///
    /// # Errors
    /// `SizeOverflow`, `Undescribed`, or `Value` if the elements would be outside the storage.
    pub fn strided(
        storage: Storage,
        offset: usize,
        sizes: &[usize],
        strides: &[usize],
        dtype: DType,
    ) -> Result<TensorRef> {
        TensorImpl::strided_for("strided", storage, offset, sizes, strides, dtype)
    }

    /// As [`TensorImpl::strided`], with errors in the name of `op`.
    ///
    /// # Errors
    /// As [`TensorImpl::strided`].
    pub fn strided_for(
        op: &'static str,
        storage: Storage,
        offset: usize,
        sizes: &[usize],
        strides: &[usize],
        dtype: DType,
    ) -> Result<TensorRef> {
        dtype.storage_size()?;
        let numel = Span { offset, sizes, strides, dtype }.numel_within(op, &storage)?;
        storage.also_hold(op, dtype)?;
        let format = Format::of(sizes, strides);
        Ok(TensorImpl::emplace(|t| {
            t.set_strided(&storage, offset, numel, dtype, format);
            t.geometry.set(sizes, strides);
            t.own_storage = Some(storage);
        }))
    }

    /// Creates a tensor in its final location: every tensor is created here. `fill` writes to it in place, because
    /// moving a structure of this size right after writing it is slow.
    #[inline(always)]
    fn emplace(fill: impl FnOnce(&mut TensorImpl)) -> TensorRef {
        TensorImpl::emplace_with(birth_keys(local_keys().0), fill)
    }

    /// As [`TensorImpl::emplace`], with initial keys.
    #[inline(always)]
    fn emplace_with(keys: u64, fill: impl FnOnce(&mut TensorImpl)) -> TensorRef {
        let mut tensor = shared!(TensorImpl {
            raw: OwnRaw::empty(),
            own_storage: None,
            offset: 0,
            geometry: Geometry::empty(),
            format: Format::Other,
            keys: AtomicU64::new(keys),
            composite: None,
            view_of: None,
            extension: Extension::empty(),
            _stays: PhantomPinned,
        });
        let handle = Shared::as_ptr(&tensor).cast();
        if let Some(t) = Shared::get_pinned_mut(&mut tensor) {
            fill(t);
            let strides = t.composite.is_none().then(|| t.geometry.strides());
            let attrs = t.composite.as_ref().map_or(&[][..], |c| c.attrs.ints());
            t.raw.settle(t.geometry.sizes(), strides, attrs, handle);
        }
        tensor
    }

    /// Writes all fields of a strided tensor but its geometry and the owner of its storage.
    #[inline(always)]
    fn set_strided(&mut self, storage: &Storage, offset: usize, numel: usize, dtype: DType, format: Format) {
        let data = storage.pointer().as_ptr().wrapping_add(offset * dtype.size());
        self.raw.set(dtype, Layout::STRIDED, storage.device(), format.is_contiguous(), data, numel);
        self.offset = offset;
        self.format = format;
    }

    /// A new contiguous tensor, its elements undefined.
    ///
    /// # Errors
    /// `SizeOverflow`, `Undescribed`, and errors of the allocation.
    #[inline]
    pub fn empty(sizes: &[usize], dtype: DType, device: Device) -> Result<TensorRef> {
        let numel = dims::numel("empty", sizes)?;
        let storage = Storage::allocate(device, numel * dtype.storage_size()?)?;
        storage.begin_with(dtype);
        Ok(TensorImpl::emplace(|t| {
            t.geometry.set_row_major(sizes);
            t.set_strided(&storage, 0, numel, dtype, Format::of_row_major(sizes, t.geometry.strides()));
            t.own_storage = Some(storage);
        }))
    }

    /// The tensor with all bytes of its memory set to 0 if the host can read it; for new tensors that safe code may read
    /// before anything was written. The memory of other devices is unchanged.
    ///
    /// # Errors
    /// Errors of waiting for the device, whose earlier work may still use the reused memory.
    pub fn zeroed_for_host(tensor: TensorRef) -> Result<TensorRef> {
        if let Some(storage) = tensor.storage() {
            storage.zero_for_host()?;
        }
        Ok(tensor)
    }

    /// Creates a contiguous tensor with the device and sizes of a contiguous one, its elements uninitialised.
    ///
    /// # Errors
    /// `Undescribed`, and errors of the allocation.
    #[inline]
    pub(crate) fn empty_like(like: &TensorImpl, dtype: DType) -> Result<TensorRef> {
        // The product of the sizes was checked when `like` was created.
        let numel = like.numel();
        let storage = Storage::allocate(like.device(), numel * dtype.storage_size()?)?;
        storage.begin_with(dtype);
        Ok(TensorImpl::emplace(|t| {
            t.geometry.set_row_major(like.sizes());
            t.set_strided(&storage, 0, numel, dtype, Format::Contiguous);
            t.own_storage = Some(storage);
        }))
    }

    /// A new tensor with these strides, its elements undefined.
    ///
    /// # Errors
    /// `SizeOverflow`, `Undescribed`, and errors of the allocation.
    pub fn empty_strided(sizes: Dims, strides: Dims, dtype: DType, device: Device) -> Result<TensorRef> {
        let numel = dims::numel("empty", &sizes)?;
        if strides.len() != sizes.len() {
            let (expected, got) = (format!("{} numbers, as the sizes", sizes.len()), format!("{strides:?}"));
            return Err(Error::Value { op: "empty_strided", argument: "strides", expected, got });
        }
        let format = Format::of(&sizes, &strides);
        let elements = if matches!(format, Format::Other) && numel > 0 {
            dims::extent(0, &sizes, &strides)
                .map(|(_, end)| end)
                .filter(|&end| end <= dims::MAX_NUMEL)
                .ok_or_else(|| Error::SizeOverflow { op: "empty_strided", sizes: sizes.as_slice().into() })?
        } else {
            numel
        };
        let storage = Storage::allocate(device, elements * dtype.storage_size()?)?;
        storage.begin_with(dtype);
        Ok(TensorImpl::emplace(|t| {
            t.set_strided(&storage, 0, numel, dtype, format);
            t.geometry.set(&sizes, &strides);
            t.own_storage = Some(storage);
        }))
    }

    /// Creates a tensor of a composite layout from its components. The first component determines the device.
    ///
    /// # Errors
    /// `Undescribed`; `Layout` if there is no component.
    pub fn composite(
        layout: Layout,
        dtype: DType,
        sizes: Dims,
        components: Vec<TensorRef>,
        attrs: impl Into<Attrs>,
    ) -> Result<TensorRef> {
        let attrs = attrs.into();
        dtype.storage_size()?;
        let numel = dims::composite_numel("composite", &sizes)?;
        let Some(first) = components.first() else {
            return Err(Error::Layout { op: "composite", layout, reason: "needs at least one component" });
        };
        let device = first.device();
        let keys = birth_keys(local_keys().0) | KeySet::of(DispatchKey::LAYOUT_FALLBACK).0;
        Ok(TensorImpl::emplace_with(keys, |t| {
            t.raw.set(dtype, layout, device, false, std::ptr::null_mut(), numel);
            t.geometry.set_composite(&sizes);
            t.composite = Some(Composite::new(components, attrs, Arc::default()));
        }))
    }

    /// Creates a view of `base`: the same memory with another geometry; without strides a contiguous one.
    ///
    /// # Errors
    /// As [`TensorImpl::strided`]; `Layout` if `base` is composite.
    #[inline]
    pub fn view(
        base: &TensorRef,
        offset: usize,
        sizes: &[usize],
        strides: Option<&[usize]>,
        many: bool,
    ) -> Result<TensorRef> {
        let Some(storage) = base.storage() else { return Err(no_view(base)) };
        let dtype = base.dtype();
        let Some(strides) = strides else {
            let numel = dims::numel("view", sizes)?;
            if !ends_within(storage, numel, offset.saturating_add(numel), dtype) {
                let strides = &dims::contiguous_strides(sizes);
                return Err(Span { offset, sizes, strides, dtype }.outside("view", storage));
            }
            return Ok(TensorImpl::emplace_view(base, many, |t| {
                t.geometry.set_row_major(sizes);
                t.set_strided(
                    storage,
                    offset,
                    numel,
                    dtype,
                    Format::of_row_major(sizes, t.geometry.strides()),
                );
            }));
        };
        let numel = Span { offset, sizes, strides, dtype }.numel_within("view", storage)?;
        let format = Format::of(sizes, strides);
        Ok(TensorImpl::emplace_view(base, many, |t| {
            t.set_strided(storage, offset, numel, dtype, format);
            t.geometry.set(sizes, strides);
        }))
    }

    /// Creates a view of `base` with elements of another dtype; offset and strides are in elements of that dtype.
    ///
    /// # Errors
    /// As [`TensorImpl::view`]; host memory that is not aligned to an element of `dtype`.
    pub fn reinterpreted(
        base: &TensorRef,
        dtype: DType,
        offset: usize,
        sizes: &[usize],
        strides: Option<&[usize]>,
    ) -> Result<TensorRef> {
        let Some(storage) = base.storage() else { return Err(no_view(base)) };
        let contiguous;
        let strides = match strides {
            Some(strides) => strides,
            None => {
                contiguous = dims::contiguous_strides(sizes);
                &contiguous
            }
        };
        let size = dtype.storage_size()?;
        let numel = Span { offset, sizes, strides, dtype }.numel_within("view", storage)?;
        let first = storage.pointer().as_ptr().addr();
        if numel > 0 && storage.device() == Device::CPU && !first.is_multiple_of(size) {
            return Err(Error::Value {
                op: "view",
                argument: "self",
                expected: format!("memory aligned to {size} bytes for {dtype}; make a `copy()` of it"),
                got: format!("{first:#x}"),
            });
        }
        storage.also_hold("view", dtype)?;
        let format = Format::of(sizes, strides);
        Ok(TensorImpl::emplace_view(base, false, |t| {
            t.set_strided(storage, offset, numel, dtype, format);
            t.geometry.set(sizes, strides);
        }))
    }

    /// [`TensorImpl::emplace`] for a view.
    #[inline(always)]
    fn emplace_view(base: &TensorRef, many: bool, fill: impl FnOnce(&mut TensorImpl)) -> TensorRef {
        let (included, excluded) = local_keys();
        let unrecorded = excluded.has(DispatchKey::AUTOGRAD);
        let origin = match &base.view_of {
            _ if many => ViewOrigin::OneOfMany,
            Some(up) if up.origin != ViewOrigin::Recorded => up.origin,
            _ if unrecorded => ViewOrigin::Unrecorded,
            _ => ViewOrigin::Recorded,
        };
        let root = base.view_of.as_ref().map_or(base, |up| &up.base);
        let inherited = base.keys.load(Ordering::Relaxed) & KeySet::of(DispatchKey::INFERENCE).0;
        TensorImpl::emplace_with(birth_keys(included) | inherited, |t| {
            fill(t);
            t.view_of = Some(ViewOf { base: root.clone(), origin });
        })
    }

    /// Creates a tensor with the same memory and geometry, detached from autograd.
    pub fn shallow_copy(&self) -> TensorRef {
        let of_layout = match &self.composite {
            Some(_) => KeySet::of(DispatchKey::LAYOUT_FALLBACK).0,
            None => 0,
        };
        TensorImpl::emplace_with(birth_keys(local_keys().0) | of_layout, |t| {
            t.raw = OwnRaw::of(self.raw.get());
            t.own_storage = self.storage().cloned();
            t.offset = self.offset;
            t.geometry = self.geometry.clone();
            t.format = self.format;
            t.composite = self
                .composite
                .as_ref()
                .map(|c| Composite::new(c.components.clone(), c.attrs.clone(), c.version.clone()));
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn six(offset: usize, sizes: &[usize], strides: &[usize]) -> Result<TensorRef> {
        TensorImpl::strided(Storage::from_vec(vec![0f32; 6]), offset, sizes, strides, DType::F32)
    }

    #[test]
    fn elements_lie_within_the_storage() {
        assert_eq!(six(0, &[2, 3], &[3, 1]).unwrap().numel(), 6);
        assert_eq!(six(9, &[0, 3], &[3, 1]).unwrap().numel(), 0);
        for (offset, sizes, strides) in
            [(1, [2, 3], [3, 1]), (0, [2, 3], [4, 1]), (0, [2, 2], [usize::MAX, 1])]
        {
            assert!(matches!(six(offset, &sizes, &strides), Err(Error::Value { .. })));
        }
        assert_eq!(six(0, &[1 << 40, 1 << 40, 0], &[1, 1, 1]).unwrap().numel(), 0);
        // One element expanded to a number of elements that overflows.
        assert!(matches!(six(0, &[1 << 60, 4], &[0, 0]), Err(Error::SizeOverflow { .. })));
        assert!(matches!(six(0, &[1], &[1, 1]), Err(Error::Value { .. })));
    }

    #[test]
    fn a_view_shares_the_storage_and_carries_a_raw_form_of_its_own() {
        let base = six(0, &[6], &[1]).unwrap();
        let many =
            TensorImpl::view(&base, 1, &[1, 1, 1, 1, 1, 2, 2], Some(&[1, 1, 1, 1, 1, 3, 1]), false).unwrap();
        let again = TensorImpl::view(&many, 2, &[2], Some(&[2]), false).unwrap();
        for (view, offset) in [(&many, 1), (&again, 2)] {
            assert!(view.base().is_some_and(|b| Shared::ptr_eq(b, &base)));
            assert!(view.storage().unwrap().same_as(base.storage().unwrap()));
            let raw = view.raw().get();
            assert_eq!(raw.data.addr(), base.raw().get().data.addr() + 4 * offset);
            assert_eq!(
                (raw.sizes.addr(), raw.strides.addr()),
                (view.sizes().as_ptr().addr(), view.strides().as_ptr().addr())
            );
            assert_eq!((raw.handle.addr(), raw.ndim as usize), (Shared::as_ptr(view).addr(), view.ndim()));
        }
        drop(base);
        let alone = again.shallow_copy();
        drop((many, again));
        assert!(alone.base().is_none() && alone.storage().unwrap().is_unique());
        assert_eq!((alone.sizes(), alone.strides(), alone.offset()), (&[2][..], &[2][..], 2));
    }
}
