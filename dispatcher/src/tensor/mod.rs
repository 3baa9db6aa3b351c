//! The tensor of the dispatcher: geometry over a storage, or components of a composite layout.

mod access;
mod attrs;
mod derived;
mod format;
mod geometry;
mod make;
mod raw;
mod twin;

pub use attrs::Attrs;
pub(crate) use derived::{Derived, Elements};
pub use format::{Format, Images};
pub(crate) use raw::OwnRaw;
pub use twin::twin;
pub(crate) use twin::{empty_twin, span};

use crate::base::dims;
use crate::base::dtype::DType;
use crate::base::key::{Device, DispatchKey, KeySet, Layout};
use crate::memory::{Extension, Shared, Storage};
use geometry::Geometry;
use keyway_sdk::abi::tensor::RawTensor;
use std::marker::PhantomPinned;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A shared tensor.
pub type TensorRef = Shared<TensorImpl>;

/// The components and attributes of a tensor whose layout is not strided.
#[derive(Debug)]
pub struct Composite {
    components: Vec<TensorRef>,
    attrs: Attrs,
    // Shared by shallow copies, as the version of a storage is.
    version: Arc<AtomicU32>,
    /// The tensor's version at its creation.
    born: u32,
}

impl Composite {
    fn new(components: Vec<TensorRef>, attrs: Attrs, version: Arc<AtomicU32>) -> Box<Composite> {
        let mut made = Composite { components, attrs, version, born: 0 };
        made.born = made.version();
        Box::new(made)
    }

    /// The sum of the versions of the tensor and of each component. Versions only grow, so the sum detects any change.
    fn version(&self) -> u32 {
        let own = self.version.load(Ordering::Relaxed);
        self.components.iter().fold(own, |sum, component| sum.wrapping_add(component.version()))
    }
}

/// The origin of a view, which decides how autograd treats an in-place change to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ViewOrigin {
    /// Created by a recorded op.
    Recorded,
    /// Created while recording was off.
    Unrecorded,
    /// Created as one of several outputs of one op.
    OneOfMany,
}

#[derive(Debug)]
struct ViewOf {
    base: TensorRef,
    origin: ViewOrigin,
}

/// Geometry, dtype, layout and keys over a storage. Immutable but for its extension slot.
pub struct TensorImpl {
    /// The raw form that is passed to plugins; it also stores dtype, layout, device and the number of elements.
    raw: OwnRaw,
    /// The storage; `None` for a composite tensor, and for a view, which refers to its base and so to its base's storage.
    own_storage: Option<Storage>,
    offset: usize,
    geometry: Geometry,
    format: Format,
    keys: AtomicU64,
    composite: Option<Box<Composite>>,
    view_of: Option<ViewOf>,
    extension: Extension,
    /// `raw` leads into the tensor itself.
    _stays: PhantomPinned,
}

impl TensorImpl {
    /// The raw form of this tensor that is passed to plugins, valid while the tensor lives; for a composite tensor without
    /// its components.
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

    /// The offset of the first element from the storage's start, in elements.
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

    /// The number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.raw.get().numel as usize
    }

    /// The number of dimensions.
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

    /// The layout by which a call with only this tensor is dispatched: `channels_last` if its strides are.
    #[inline]
    pub fn dispatch_layout(&self) -> Layout {
        match self.format {
            Format::ChannelsLast | Format::EitherLast => Layout::CHANNELS_LAST,
            _ => self.layout(),
        }
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

    /// Whether the tensor is contiguous (row-major, without gaps).
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.format.is_contiguous()
    }

    /// Whether the tensor is contiguous and not also channels_last.
    #[inline]
    pub(crate) fn is_row_major(&self) -> bool {
        self.format == Format::Contiguous
    }

    /// Whether both tensors have the same sizes, layout and device.
    #[inline]
    pub(crate) fn is_like(&self, other: &TensorImpl) -> bool {
        let key = |raw: &RawTensor| (raw.layout, raw.device, raw.device_index);
        key(self.raw.get()) == key(other.raw.get()) && dims::same(self.sizes(), other.sizes())
    }

    /// Whether both tensors consist of exactly the same elements of the same memory.
    #[inline]
    pub(crate) fn coincides(&self, other: &TensorImpl) -> bool {
        self.raw.get().data == other.raw.get().data
            && (std::ptr::eq(self, other)
                || (self.dtype() == other.dtype()
                    && dims::same(self.sizes(), other.sizes())
                    && dims::same(self.strides(), other.strides())))
    }

    /// The range of addresses from a strided tensor's first element to the end of its last; `None` for a composite or empty
    /// tensor, which overlaps nothing.
    #[inline]
    pub fn reach(&self) -> Option<Range<usize>> {
        if self.numel() == 0 || !self.is_strided() {
            return None;
        }
        let reach = |(&n, &s): (&usize, &usize)| (n - 1) * s;
        let last = match self.is_contiguous() {
            true => self.numel() - 1,
            false => self.sizes().iter().zip(self.strides()).map(reach).sum(),
        };
        let begin = self.raw.get().data.addr();
        Some(begin..begin + (last + 1) * self.dtype().size())
    }

    /// Whether the address ranges of two strided tensors overlap, each from its first element to its last; `reach` is the
    /// range of `other`. A composite tensor overlaps nothing.
    #[inline]
    pub(crate) fn overlaps(&self, other: &TensorImpl, reach: Option<&Range<usize>>) -> bool {
        match (self.reach(), reach) {
            (Some(a), Some(b)) => self.device() == other.device() && a.start < b.end && b.start < a.end,
            _ => false,
        }
    }

    /// Whether the tensor is strided: a single buffer.
    #[inline]
    pub fn is_strided(&self) -> bool {
        self.composite.is_none()
    }

    /// The parts of a composite tensor.
    #[inline]
    pub fn components(&self) -> &[TensorRef] {
        self.composite.as_ref().map_or(&[], |c| &c.components)
    }

    /// The attributes of a composite tensor as integers; see [`Attrs::ints`].
    #[inline]
    pub fn attrs(&self) -> &[i64] {
        self.composite.as_ref().map_or(&[], |c| c.attrs.ints())
    }

    /// The attributes of a composite tensor with their types; empty for a strided tensor.
    pub fn attributes(&self) -> Attrs {
        self.composite.as_ref().map_or_else(Attrs::default, |c| c.attrs.clone())
    }

    /// Attribute `i` of a composite tensor as it crosses to a plugin; its addresses are valid as long as the tensor is.
    pub(crate) fn raw_attr(&self, i: usize) -> Option<keyway_sdk::abi::tensor::RawArg> {
        self.composite.as_ref()?.attrs.raw(i)
    }

    /// The version: the number of in-place changes of the content; for a composite tensor including those of its
    /// components.
    #[inline]
    pub fn version(&self) -> u32 {
        match (self.storage(), &self.composite) {
            (Some(storage), _) => storage.version(),
            (None, Some(composite)) => composite.version(),
            (None, None) => 0,
        }
    }

    /// Whether a composite tensor has been changed in place since its creation.
    pub fn changed_since_made(&self) -> bool {
        self.composite.as_ref().is_some_and(|composite| composite.version() != composite.born)
    }

    /// Whether the tensor or a component of it is in this storage.
    pub(crate) fn uses(&self, storage: &Storage) -> bool {
        self.storage().is_some_and(|own| own.same_as(storage))
            || self.components().iter().any(|component| component.uses(storage))
    }

    /// Records one in-place change.
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

    /// The dispatch keys that this tensor adds to a call.
    #[inline]
    pub fn keys(&self) -> KeySet {
        let own = self.keys.load(Ordering::Relaxed);
        match &self.view_of {
            // The base may have entered a graph after the view was created.
            Some(view) => KeySet(own | view.base.keys.load(Ordering::Relaxed)),
            None => KeySet(own),
        }
    }

    /// Adds or removes a key.
    #[inline]
    pub fn set_key(&self, key: DispatchKey, on: bool) {
        if on {
            self.keys.fetch_or(KeySet::of(key).0, Ordering::Relaxed);
        } else {
            self.keys.fetch_and(!KeySet::of(key).0, Ordering::Relaxed);
        }
    }

    /// Whether the tensor was created in inference mode.
    #[inline]
    pub fn is_inference(&self) -> bool {
        self.keys().has(DispatchKey::INFERENCE)
    }

    /// The base of a view, following views of views; `None` if the tensor is not a view.
    #[inline]
    pub fn base(&self) -> Option<&TensorRef> {
        self.view_of.as_ref().map(|v| &v.base)
    }

    /// The origin of this view; `None` for a tensor that is not a view.
    #[inline]
    pub fn view_origin(&self) -> Option<ViewOrigin> {
        self.view_of.as_ref().map(|v| v.origin)
    }

    /// The extension slot's value: data that a higher layer attaches to the tensor, created once.
    #[inline]
    pub fn extension<T: 'static>(&self) -> Option<&T> {
        self.extension.get()
    }

    /// Fills the empty extension slot of a uniquely owned tensor, and adds `key`, without any atomic read-modify-write;
    /// returns the value mutably. `None`, without effect, for any other tensor.
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

    /// The extension slot's value, created by `make` if the slot is empty. `None` if another layer has filled it.
    pub fn extension_or_init<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.extension.get_or_init(make)
    }
}

impl std::fmt::Debug for TensorImpl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?} on {} ({})", self.dtype(), self.sizes(), self.device(), self.layout())
    }
}
