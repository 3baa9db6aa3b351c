//! The tensor as the dispatcher knows it: geometry over a storage, or components of a composite layout.

use crate::abi::holder::OwnRaw;
use crate::dims::{self, Dims};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::geometry::Geometry;
use crate::key::{Device, DispatchKey, KeySet, Layout, local_keys};
use crate::memory::{Hung, Shared, Storage, shared};
use keyway_sdk::abi::tensor::RawTensor;
use std::marker::PhantomPinned;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A shared tensor.
pub type TensorRef = Shared<TensorImpl>;

/// Which memory format the strides are in, computed once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Row-major without gaps, and not channels_last.
    Contiguous,
    /// Channels innermost, and not row-major.
    ChannelsLast,
    /// Both at once, as with one channel or one pixel.
    Either,
    /// Neither.
    Other,
}

/// The parts of a tensor whose layout is not strided.
#[derive(Debug)]
pub struct Composite {
    components: Vec<TensorRef>,
    attrs: Vec<i64>,
    // Shared by shallow copies, as the version of a storage is.
    version: Arc<AtomicU32>,
}

/// How a view was made, which decides what an in-place change to it means for autograd.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ViewOrigin {
    /// With the graph on.
    Recorded,
    /// While the graph was off.
    Unrecorded,
    /// As one of several outputs of one op.
    OneOfMany,
}

#[derive(Debug)]
struct ViewOf {
    base: TensorRef,
    origin: ViewOrigin,
}

/// Geometry, dtype, layout and keys over a storage. Immutable but for what autograd hangs on it.
pub struct TensorImpl {
    /// What plugins see; also where dtype, layout, device and the number of elements are kept.
    raw: OwnRaw,
    /// `None` for a composite tensor, and for a view, which keeps its base and so its base's storage.
    own_storage: Option<Storage>,
    offset: usize,
    geometry: Geometry,
    format: Format,
    keys: AtomicU64,
    composite: Option<Box<Composite>>,
    view_of: Option<ViewOf>,
    extension: Hung,
    /// `raw` leads into the tensor itself.
    _stays: PhantomPinned,
}

#[cold]
fn no_view(base: &TensorImpl) -> Error {
    Error::Layout { op: "view", layout: base.layout(), reason: "has no strides to view" }
}

#[inline]
fn format_of(sizes: &[usize], strides: &[usize]) -> Format {
    let contiguous = dims::is_contiguous(sizes, strides);
    if !(3..=5).contains(&sizes.len()) {
        return if contiguous { Format::Contiguous } else { Format::Other };
    }
    format_of_image(sizes, strides, contiguous)
}

#[inline]
fn format_of_row_major(sizes: &[usize], strides: &[usize]) -> Format {
    match sizes.len() {
        3..=5 => format_of_image(sizes, strides, true),
        _ => Format::Contiguous,
    }
}

fn format_of_image(sizes: &[usize], strides: &[usize], contiguous: bool) -> Format {
    match (contiguous, dims::is_channels_last(sizes, strides)) {
        (true, true) => Format::Either,
        (true, false) => Format::Contiguous,
        (false, true) => Format::ChannelsLast,
        (false, false) => Format::Other,
    }
}

/// The number of elements of a strided tensor, if all of them lie within the storage.
#[inline]
fn fitting(
    op: &'static str,
    storage: &Storage,
    offset: usize,
    sizes: &[usize],
    strides: &[usize],
    dtype: DType,
) -> Result<usize> {
    match dims::extent(offset, sizes, strides) {
        Some((numel, end)) if ends_within(storage, numel, end, dtype) => Ok(numel),
        // Sizes that are too large by themselves say so.
        _ => match dims::numel(op, sizes)? {
            0 if sizes.len() == strides.len() => Ok(0),
            _ => Err(outside(op, storage, offset, sizes, strides, dtype)),
        },
    }
}

/// Whether a storage holds elements up to `end`.
#[inline(always)]
fn ends_within(storage: &Storage, numel: usize, end: usize, dtype: DType) -> bool {
    numel == 0 || end.checked_mul(dtype.size().max(1)).is_some_and(|end| end <= storage.bytes())
}

#[cold]
fn outside(
    op: &'static str,
    storage: &Storage,
    offset: usize,
    sizes: &[usize],
    strides: &[usize],
    dtype: DType,
) -> Error {
    Error::Value {
        op,
        argument: "strides",
        expected: format!("elements within the storage's {} bytes", storage.bytes()),
        got: format!("sizes {sizes:?}, strides {strides:?}, offset {offset}, dtype {dtype}"),
    }
}

/// Marks what is made in inference mode.
fn birth_keys() -> u64 {
    local_keys().0.intersect(KeySet::of(DispatchKey::INFERENCE)).0
}

impl TensorImpl {
    /// A strided tensor over part of a storage.
    ///
    /// # Errors
    /// `SizeOverflow`, or `Value` when the elements would lie outside the storage.
    pub fn strided(
        storage: Storage,
        offset: usize,
        sizes: &[usize],
        strides: &[usize],
        dtype: DType,
    ) -> Result<TensorRef> {
        let numel = fitting("strided", &storage, offset, sizes, strides, dtype)?;
        let format = format_of(sizes, strides);
        Ok(TensorImpl::place(|t| {
            t.set_strided(&storage, offset, numel, dtype, format);
            t.geometry.set(sizes, strides);
            t.own_storage = Some(storage);
        }))
    }

    /// Makes a tensor where it will stay: every tensor is made here. `fill` writes to it in place, because a structure
    /// of this size that was just written is slow to move.
    #[inline(always)]
    fn place(fill: impl FnOnce(&mut TensorImpl)) -> TensorRef {
        let mut tensor = shared!(TensorImpl {
            raw: OwnRaw::empty(),
            own_storage: None,
            offset: 0,
            geometry: Geometry::empty(),
            format: Format::Other,
            keys: AtomicU64::new(birth_keys()),
            composite: None,
            view_of: None,
            extension: Hung::empty(),
            _stays: PhantomPinned,
        });
        let handle = Shared::as_ptr(&tensor).cast();
        if let Some(t) = Shared::get_pinned_mut(&mut tensor) {
            fill(t);
            let strides = t.composite.is_none().then(|| t.geometry.strides());
            let attrs = t.composite.as_ref().map_or(&[][..], |c| &c.attrs);
            t.raw.settle(t.geometry.sizes(), strides, attrs, handle);
        }
        tensor
    }

    /// Writes all of a strided tensor but its geometry and who keeps the storage.
    #[inline(always)]
    fn set_strided(&mut self, storage: &Storage, offset: usize, numel: usize, dtype: DType, format: Format) {
        let data = storage.pointer().as_ptr().wrapping_add(offset * dtype.size());
        let contiguous = matches!(format, Format::Contiguous | Format::Either);
        self.raw.set(dtype, Layout::STRIDED, storage.device(), contiguous, data, numel);
        self.offset = offset;
        self.format = format;
    }

    /// A new contiguous tensor, its elements undefined.
    ///
    /// # Errors
    /// `SizeOverflow`, and what the allocation reports.
    #[inline]
    pub fn empty(sizes: &[usize], dtype: DType, device: Device) -> Result<TensorRef> {
        let numel = dims::numel("empty", sizes)?;
        let storage = Storage::allocate(device, numel * dtype.size())?;
        Ok(TensorImpl::place(|t| {
            t.geometry.set_row_major(sizes);
            t.set_strided(&storage, 0, numel, dtype, format_of_row_major(sizes, t.geometry.strides()));
            t.own_storage = Some(storage);
        }))
    }

    /// A new contiguous tensor on the device and in the sizes of a row-major one, its elements undefined.
    ///
    /// # Errors
    /// What the allocation reports.
    #[inline]
    pub(crate) fn empty_like(like: &TensorImpl, dtype: DType) -> Result<TensorRef> {
        // The product of the sizes was counted when `like` was made.
        let numel = like.numel();
        let storage = Storage::allocate(like.device(), numel * dtype.size())?;
        Ok(TensorImpl::place(|t| {
            t.geometry.set_row_major(like.sizes());
            t.set_strided(&storage, 0, numel, dtype, Format::Contiguous);
            t.own_storage = Some(storage);
        }))
    }

    /// A new tensor with these strides, its elements undefined.
    ///
    /// # Errors
    /// `SizeOverflow`, and what the allocation reports.
    pub fn empty_strided(sizes: Dims, strides: Dims, dtype: DType, device: Device) -> Result<TensorRef> {
        let numel = dims::numel("empty", &sizes)?;
        let format = format_of(&sizes, &strides);
        let elements = if matches!(format, Format::Other) && numel > 0 {
            let mut reach = Some(1usize);
            for (&size, &stride) in sizes.iter().zip(&strides) {
                reach = reach.and_then(|r| (size - 1).checked_mul(stride).and_then(|s| r.checked_add(s)));
            }
            reach
                .filter(|&r| r <= isize::MAX as usize / 16)
                .ok_or_else(|| Error::SizeOverflow { op: "empty_strided", sizes: sizes.as_slice().into() })?
        } else {
            numel
        };
        let storage = Storage::allocate(device, elements * dtype.size())?;
        Ok(TensorImpl::place(|t| {
            t.set_strided(&storage, 0, numel, dtype, format);
            t.geometry.set(&sizes, &strides);
            t.own_storage = Some(storage);
        }))
    }

    /// A tensor of a composite layout, as its parts. The first component gives the device.
    ///
    /// # Errors
    /// `Layout` when there is no component.
    pub fn composite(
        layout: Layout,
        dtype: DType,
        sizes: Dims,
        components: Vec<TensorRef>,
        attrs: Vec<i64>,
    ) -> Result<TensorRef> {
        let numel = dims::numel("composite", &sizes)?;
        let Some(first) = components.first() else {
            return Err(Error::Layout { op: "composite", layout, reason: "needs at least one component" });
        };
        let device = first.device();
        Ok(TensorImpl::place(|t| {
            t.raw.set(dtype, layout, device, false, std::ptr::null_mut(), numel);
            t.geometry.set_composite(&sizes);
            t.composite = Some(Box::new(Composite { components, attrs, version: Arc::default() }));
        }))
    }

    /// A view of `base`: the same memory with another geometry; without strides a row-major one.
    ///
    /// # Errors
    /// As [`TensorImpl::strided`]; `Layout` when `base` is composite.
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
                return Err(outside("view", storage, offset, sizes, &dims::contiguous_strides(sizes), dtype));
            }
            return Ok(TensorImpl::place_view(base, many, |t| {
                t.geometry.set_row_major(sizes);
                t.set_strided(
                    storage,
                    offset,
                    numel,
                    dtype,
                    format_of_row_major(sizes, t.geometry.strides()),
                );
            }));
        };
        let numel = fitting("view", storage, offset, sizes, strides, dtype)?;
        let format = format_of(sizes, strides);
        Ok(TensorImpl::place_view(base, many, |t| {
            t.set_strided(storage, offset, numel, dtype, format);
            t.geometry.set(sizes, strides);
        }))
    }

    /// As [`TensorImpl::place`], of a view.
    #[inline(always)]
    fn place_view(base: &TensorRef, many: bool, fill: impl FnOnce(&mut TensorImpl)) -> TensorRef {
        let unrecorded = local_keys().1.has(DispatchKey::AUTOGRAD);
        let origin = match &base.view_of {
            _ if many => ViewOrigin::OneOfMany,
            Some(up) if up.origin != ViewOrigin::Recorded => up.origin,
            _ if unrecorded => ViewOrigin::Unrecorded,
            _ => ViewOrigin::Recorded,
        };
        let root = base.view_of.as_ref().map_or(base, |up| &up.base);
        let inherited = base.keys.load(Ordering::Relaxed) & KeySet::of(DispatchKey::INFERENCE).0;
        TensorImpl::place(|t| {
            fill(t);
            t.view_of = Some(ViewOf { base: root.clone(), origin });
            *t.keys.get_mut() |= inherited;
        })
    }

    /// The same memory and geometry as a tensor of its own, of which autograd knows nothing.
    pub fn shallow_copy(&self) -> TensorRef {
        TensorImpl::place(|t| {
            t.raw = OwnRaw::of(self.raw.get());
            t.own_storage = self.storage().cloned();
            t.offset = self.offset;
            t.geometry = self.geometry.clone();
            t.format = self.format;
            t.composite = self.composite.as_ref().map(|c| {
                Box::new(Composite {
                    components: c.components.clone(),
                    attrs: c.attrs.clone(),
                    version: c.version.clone(),
                })
            });
        })
    }

    /// What plugins see of this tensor, valid while it lives; for a composite one without its components.
    #[inline(always)]
    pub(crate) fn raw(&self) -> &OwnRaw {
        &self.raw
    }

    /// The storage; `None` for a composite tensor.
    #[inline]
    pub fn storage(&self) -> Option<&Storage> {
        match &self.view_of {
            Some(view) => view.base.own_storage.as_ref(),
            None => self.own_storage.as_ref(),
        }
    }

    /// Where the first element lies, in elements from the storage's start.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Sizes.
    #[inline]
    pub fn sizes(&self) -> &[usize] {
        self.geometry.sizes()
    }

    /// Strides in elements; empty for a composite tensor.
    #[inline]
    pub fn strides(&self) -> &[usize] {
        self.geometry.strides()
    }

    /// Number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.raw.get().numel as usize
    }

    /// Number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.geometry.ndim()
    }

    /// Element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        DType(self.raw.get().dtype)
    }

    /// The layout; strided for every memory format.
    #[inline]
    pub fn layout(&self) -> Layout {
        Layout(self.raw.get().layout)
    }

    /// The layout that this tensor is dispatched by: `channels_last` where the strides say so.
    #[inline]
    pub fn dispatch_layout(&self) -> Layout {
        if self.format == Format::ChannelsLast { Layout::CHANNELS_LAST } else { self.layout() }
    }

    /// The device.
    #[inline]
    pub fn device(&self) -> Device {
        Device { kind: self.raw.get().device, index: self.raw.get().device_index }
    }

    /// The memory format.
    #[inline]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether elements lie in row-major order without gaps.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        matches!(self.format, Format::Contiguous | Format::Either)
    }

    /// Whether elements lie in row-major order without gaps and in no other format at once.
    #[inline]
    pub(crate) fn is_row_major(&self) -> bool {
        self.format == Format::Contiguous
    }

    /// Whether both have the same sizes, layout and device.
    #[inline]
    pub(crate) fn is_like(&self, other: &TensorImpl) -> bool {
        let place = |raw: &RawTensor| (raw.layout, raw.device, raw.device_index);
        place(self.raw.get()) == place(other.raw.get()) && dims::same(self.sizes(), other.sizes())
    }

    /// Whether both are exactly the same elements of the same memory.
    #[inline]
    pub(crate) fn coincides(&self, other: &TensorImpl) -> bool {
        self.raw.get().data == other.raw.get().data
            && self.dtype() == other.dtype()
            && dims::same(self.sizes(), other.sizes())
            && dims::same(self.strides(), other.strides())
    }

    /// Whether two row-major tensors of one device share memory.
    #[inline]
    pub(crate) fn meets(&self, other: &TensorImpl) -> bool {
        let range = |t: &TensorImpl| {
            let begin = t.raw.get().data.addr();
            (begin, begin + t.numel() * t.dtype().size())
        };
        let ((a0, a1), (b0, b1)) = (range(self), range(other));
        a0 < b1 && b0 < a1
    }

    /// Whether the tensor is one strided buffer.
    #[inline]
    pub fn is_strided(&self) -> bool {
        self.composite.is_none()
    }

    /// The parts of a composite tensor.
    #[inline]
    pub fn components(&self) -> &[TensorRef] {
        self.composite.as_ref().map_or(&[], |c| &c.components)
    }

    /// The attributes of a composite tensor.
    #[inline]
    pub fn attrs(&self) -> &[i64] {
        self.composite.as_ref().map_or(&[], |c| &c.attrs)
    }

    /// How many times the content has been changed in place.
    #[inline]
    pub fn version(&self) -> u32 {
        match (self.storage(), &self.composite) {
            (Some(storage), _) => storage.version(),
            (None, Some(composite)) => composite.version.load(Ordering::Relaxed),
            (None, None) => 0,
        }
    }

    /// Notes one change in place.
    #[inline]
    pub fn bump_version(&self) {
        match (self.storage(), &self.composite) {
            (Some(storage), _) => storage.bump_version(),
            (None, Some(composite)) => {
                composite.version.fetch_add(1, Ordering::Relaxed);
            }
            (None, None) => {}
        }
    }

    /// The functionality keys that this tensor brings to a call.
    #[inline]
    pub fn keys(&self) -> KeySet {
        let own = self.keys.load(Ordering::Relaxed);
        match &self.view_of {
            // The base may have entered a graph after the view was made.
            Some(view) => KeySet(own | view.base.keys.load(Ordering::Relaxed)),
            None => KeySet(own),
        }
    }

    /// Adds or takes a key.
    #[inline]
    pub fn set_key(&self, key: DispatchKey, on: bool) {
        if on {
            self.keys.fetch_or(KeySet::of(key).0, Ordering::Relaxed);
        } else {
            self.keys.fetch_and(!KeySet::of(key).0, Ordering::Relaxed);
        }
    }

    /// Whether this was made in inference mode.
    #[inline]
    pub fn is_inference(&self) -> bool {
        self.keys().has(DispatchKey::INFERENCE)
    }

    /// The tensor that this one is a view of, directly or through others.
    #[inline]
    pub fn base(&self) -> Option<&TensorRef> {
        self.view_of.as_ref().map(|v| &v.base)
    }

    /// How this view was made; `None` for a tensor that is not a view.
    #[inline]
    pub fn view_origin(&self) -> Option<ViewOrigin> {
        self.view_of.as_ref().map(|v| v.origin)
    }

    /// What a layer above hangs on the tensor, made once.
    #[inline]
    pub fn extension<T: 'static>(&self) -> Option<&T> {
        self.extension.get()
    }

    /// Hangs a new value on a tensor that nobody else has yet, on which nothing hangs, and adds `key`, without any
    /// locked instruction; the value, for a change. `None`, and nothing done, for any other tensor.
    #[inline]
    pub fn extend_new<T: Default + Send + Sync + 'static>(
        tensor: &mut TensorRef,
        key: DispatchKey,
    ) -> Option<&mut T> {
        let inner = Shared::get_pinned_mut(tensor)?;
        let made = inner.extension.set_new(T::default())?;
        *inner.keys.get_mut() |= KeySet::of(key).0;
        Some(made)
    }

    /// What a layer above hangs on the tensor, made by `make` if it is not there yet. `None` if another
    /// layer has hung something else there.
    pub fn extension_or_init<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.extension.get_or_init(make)
    }
}

impl std::fmt::Debug for TensorImpl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?} on {} ({})", self.dtype(), self.sizes(), self.device(), self.layout())
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
        // One element shown more often than can be counted.
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
