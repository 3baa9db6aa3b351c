//! The tensor as the dispatcher knows it: geometry over a storage, or components of a composite layout.

use crate::dims::{self, Dims};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::key::{Device, DispatchKey, KeySet, Layout, local_keys};
use crate::memory::Storage;
use std::any::Any;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A shared tensor.
pub type TensorRef = Arc<TensorImpl>;

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
    storage: Option<Storage>,
    offset: usize,
    sizes: Dims,
    strides: Dims,
    numel: usize,
    dtype: DType,
    layout: Layout,
    device: Device,
    format: Format,
    keys: AtomicU64,
    composite: Option<Box<Composite>>,
    view_of: Option<Box<ViewOf>>,
    extension: OnceLock<Box<dyn Any + Send + Sync>>,
}

fn format_of(sizes: &[usize], strides: &[usize]) -> Format {
    let contiguous = dims::is_contiguous(sizes, strides);
    if !(3..=5).contains(&sizes.len()) {
        return if contiguous { Format::Contiguous } else { Format::Other };
    }
    match (contiguous, dims::is_channels_last(sizes, strides)) {
        (true, true) => Format::Either,
        (true, false) => Format::Contiguous,
        (false, true) => Format::ChannelsLast,
        (false, false) => Format::Other,
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
        sizes: Dims,
        strides: Dims,
        dtype: DType,
    ) -> Result<TensorRef> {
        let numel = dims::numel("strided", &sizes)?;
        let outside = || Error::Value {
            op: "strided",
            argument: "strides",
            expected: format!("elements within the storage's {} bytes", storage.bytes()),
            got: format!("sizes {sizes:?}, strides {strides:?}, offset {offset}, dtype {dtype}"),
        };
        if sizes.len() != strides.len() {
            return Err(outside());
        }
        if numel > 0 {
            let mut last = Some(offset);
            for (&size, &stride) in sizes.iter().zip(&strides) {
                last = last.and_then(|l| (size - 1).checked_mul(stride).and_then(|s| l.checked_add(s)));
            }
            let end = last.and_then(|l| l.checked_add(1)).and_then(|l| l.checked_mul(dtype.size().max(1)));
            if end.is_none_or(|end| end > storage.bytes()) {
                return Err(outside());
            }
        }
        let format = format_of(&sizes, &strides);
        Ok(TensorImpl::assemble(storage, offset, sizes, strides, numel, dtype, format))
    }

    #[inline]
    fn assemble(
        storage: Storage,
        offset: usize,
        sizes: Dims,
        strides: Dims,
        numel: usize,
        dtype: DType,
        format: Format,
    ) -> TensorRef {
        let device = storage.device();
        Arc::new(TensorImpl {
            storage: Some(storage),
            offset,
            sizes,
            strides,
            numel,
            dtype,
            layout: Layout::STRIDED,
            device,
            format,
            keys: AtomicU64::new(birth_keys()),
            composite: None,
            view_of: None,
            extension: OnceLock::new(),
        })
    }

    /// A new contiguous tensor, its elements undefined.
    ///
    /// # Errors
    /// `SizeOverflow`, and what the allocation reports.
    pub fn empty(sizes: &[usize], dtype: DType, device: Device) -> Result<TensorRef> {
        Self::empty_contiguous(Dims::from_slice(sizes), dtype, device)
    }

    /// A new contiguous tensor, its elements undefined.
    ///
    /// # Errors
    /// `SizeOverflow`, and what the allocation reports.
    #[inline]
    pub fn empty_contiguous(sizes: Dims, dtype: DType, device: Device) -> Result<TensorRef> {
        let numel = dims::numel("empty", &sizes)?;
        let strides = dims::contiguous_strides(&sizes);
        let format =
            if (3..=5).contains(&sizes.len()) { format_of(&sizes, &strides) } else { Format::Contiguous };
        let storage = Storage::allocate(device, numel * dtype.size())?;
        Ok(TensorImpl::assemble(storage, 0, sizes, strides, numel, dtype, format))
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
                .ok_or_else(|| Error::SizeOverflow { op: "empty_strided", sizes: sizes.clone() })?
        } else {
            numel
        };
        let storage = Storage::allocate(device, elements * dtype.size())?;
        Ok(TensorImpl::assemble(storage, 0, sizes, strides, numel, dtype, format))
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
        let device = first.device;
        Ok(Arc::new(TensorImpl {
            storage: None,
            offset: 0,
            sizes,
            strides: Dims::new(),
            numel,
            dtype,
            layout,
            device,
            format: Format::Other,
            keys: AtomicU64::new(birth_keys()),
            composite: Some(Box::new(Composite { components, attrs, version: Arc::default() })),
            view_of: None,
            extension: OnceLock::new(),
        }))
    }

    /// A view of `base`: the same memory with another geometry.
    ///
    /// # Errors
    /// As [`TensorImpl::strided`]; `Layout` when `base` is composite.
    pub fn view(
        base: &TensorRef,
        offset: usize,
        sizes: Dims,
        strides: Dims,
        many: bool,
    ) -> Result<TensorRef> {
        let Some(storage) = &base.storage else {
            return Err(Error::Layout { op: "view", layout: base.layout, reason: "has no strides to view" });
        };
        let mut made = TensorImpl::strided(storage.clone(), offset, sizes, strides, base.dtype)?;
        let unrecorded = local_keys().1.has(DispatchKey::AUTOGRAD);
        let origin = match &base.view_of {
            _ if many => ViewOrigin::OneOfMany,
            Some(up) if up.origin != ViewOrigin::Recorded => up.origin,
            _ if unrecorded => ViewOrigin::Unrecorded,
            _ => ViewOrigin::Recorded,
        };
        let root = base.view_of.as_ref().map_or_else(|| base.clone(), |up| up.base.clone());
        if let Some(inner) = Arc::get_mut(&mut made) {
            inner.view_of = Some(Box::new(ViewOf { base: root, origin }));
            let inherited = base.keys.load(Ordering::Relaxed) & KeySet::of(DispatchKey::INFERENCE).0;
            *inner.keys.get_mut() |= inherited;
        }
        Ok(made)
    }

    /// The same memory and geometry as a tensor of its own, of which autograd knows nothing.
    pub fn shallow_copy(&self) -> TensorRef {
        Arc::new(TensorImpl {
            storage: self.storage.clone(),
            offset: self.offset,
            sizes: self.sizes.clone(),
            strides: self.strides.clone(),
            numel: self.numel,
            dtype: self.dtype,
            layout: self.layout,
            device: self.device,
            format: self.format,
            keys: AtomicU64::new(birth_keys()),
            composite: self.composite.as_ref().map(|c| {
                Box::new(Composite {
                    components: c.components.clone(),
                    attrs: c.attrs.clone(),
                    version: c.version.clone(),
                })
            }),
            view_of: None,
            extension: OnceLock::new(),
        })
    }

    /// The storage; `None` for a composite tensor.
    pub fn storage(&self) -> Option<&Storage> {
        self.storage.as_ref()
    }

    /// Where the first element lies, in elements from the storage's start.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Sizes.
    #[inline]
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Strides in elements; empty for a composite tensor.
    #[inline]
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// Number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.numel
    }

    /// Number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.sizes.len()
    }

    /// Element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The layout; strided for every memory format.
    #[inline]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The layout that this tensor is dispatched by: `channels_last` where the strides say so.
    #[inline]
    pub fn dispatch_layout(&self) -> Layout {
        if self.format == Format::ChannelsLast { Layout::CHANNELS_LAST } else { self.layout }
    }

    /// The device.
    #[inline]
    pub fn device(&self) -> Device {
        self.device
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

    /// Whether the tensor is one strided buffer.
    #[inline]
    pub fn is_strided(&self) -> bool {
        self.storage.is_some()
    }

    /// The parts of a composite tensor.
    pub fn components(&self) -> &[TensorRef] {
        self.composite.as_ref().map_or(&[], |c| &c.components)
    }

    /// The attributes of a composite tensor.
    pub fn attrs(&self) -> &[i64] {
        self.composite.as_ref().map_or(&[], |c| &c.attrs)
    }

    /// How many times the content has been changed in place.
    pub fn version(&self) -> u32 {
        match (&self.storage, &self.composite) {
            (Some(storage), _) => storage.version(),
            (None, Some(composite)) => composite.version.load(Ordering::Relaxed),
            (None, None) => 0,
        }
    }

    /// Notes one change in place.
    pub fn bump_version(&self) {
        match (&self.storage, &self.composite) {
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
    pub fn set_key(&self, key: DispatchKey, on: bool) {
        if on {
            self.keys.fetch_or(KeySet::of(key).0, Ordering::Relaxed);
        } else {
            self.keys.fetch_and(!KeySet::of(key).0, Ordering::Relaxed);
        }
    }

    /// Whether this was made in inference mode.
    pub fn is_inference(&self) -> bool {
        self.keys().has(DispatchKey::INFERENCE)
    }

    /// The tensor that this one is a view of, directly or through others.
    pub fn base(&self) -> Option<&TensorRef> {
        self.view_of.as_ref().map(|v| &v.base)
    }

    /// How this view was made; `None` for a tensor that is not a view.
    pub fn view_origin(&self) -> Option<ViewOrigin> {
        self.view_of.as_ref().map(|v| v.origin)
    }

    /// What a layer above hangs on the tensor, made once.
    #[inline]
    pub fn extension<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.extension.get()?.downcast_ref()
    }

    /// What a layer above hangs on the tensor, made by `make` if it is not there yet. `None` if another
    /// layer has hung something else there.
    pub fn extension_or_init<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.extension.get_or_init(|| Box::new(make())).downcast_ref()
    }
}

impl std::fmt::Debug for TensorImpl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?} on {} ({})", self.dtype, self.sizes(), self.device, self.layout)
    }
}
