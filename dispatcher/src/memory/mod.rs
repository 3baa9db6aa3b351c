//! Storage: a block of memory with its owner. It has no shape; views share it.

mod access;
mod accessor;
#[cfg(test)]
mod accessor_tests;
mod allocator;
mod blocks;
pub mod bytes;
mod copy;
pub mod dlpack;
mod elements;
mod extension;
mod foreign;
mod host;
mod in_use;
#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(target_os = "linux")]
mod mapped;
#[cfg(target_os = "linux")]
mod mapping;
mod observer;
mod published;
mod scratch;
mod shared;
mod sync;

pub use accessor::{Accessor, AccessorMut, AccessorRef};
pub use allocator::{AllocatorGuard, HostAllocator, set_host_allocator, use_host_allocator};
pub use copy::{copy_bytes, copy_bytes_async, read_bytes, write_bytes};
pub use elements::{ElementReader, StridedElements};
pub(crate) use extension::Extension;
pub use foreign::Blob;
pub use host::host_vec;
pub(crate) use in_use::{Access, InUse, Use, may_choose};
#[cfg(target_os = "linux")]
pub use mapping::FileId;
pub use observer::{Observation, StorageObserver, observe_storages};
pub(crate) use published::Published;
pub(crate) use scratch::{allocate_scratch, free_scratch};
pub use shared::{Shared, Weak, shared};

use crate::base::error::Result;
use crate::base::key::Device;
use crate::device::capture::Retained;
use crate::device::pinned::{self, Block};
use crate::device::{self as device_abi, DeviceEntry, StreamRef};
use foreign::Foreign;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The function that frees the memory.
enum Owner {
    /// No memory was allocated.
    Nobody,
    /// The host's own allocator, used for host memory while no backend provides one.
    Host,
    /// The device of a plugin.
    Device(&'static DeviceEntry),
    /// The pinned host memory of a device.
    Pinned(Box<Block>),
    /// A host allocator of the program.
    Allocator(Arc<dyn HostAllocator>),
    /// A vector, which frees its own memory.
    Vector(#[allow(dead_code)] Box<dyn std::any::Any + Send + Sync>),
    /// Foreign memory, released by dropping this.
    Foreign(Box<Foreign>),
    /// As `Foreign`, but shared with readers outside, so it must not be written.
    ReadOnly(Box<Foreign>),
    /// A mapped file, which other processes may read and write.
    #[cfg(target_os = "linux")]
    Mapped(Box<mapping::Mapping>),
}

struct Inner {
    pointer: NonNull<u8>,
    bytes: usize,
    device: Device,
    owner: Owner,
    version: AtomicU32,
    holds: in_use::Holds,
    /// The stream that the memory was allocated on, and is freed on.
    stream: StreamRef,
    /// Rarely used fields.
    rare: OnceLock<Box<Rare>>,
}

/// Rarely used fields, allocated separately to keep other storages small.
#[derive(Default)]
struct Rare {
    /// Other streams that used the memory.
    streams: Mutex<Vec<StreamRef>>,
    /// Data that a layer above attaches to the memory.
    extension: Extension,
    /// Set once observers were notified of the storage.
    reported: OnceLock<observer::Reported>,
}

// SAFETY: the memory is plain bytes; kernels and copies that touch it from several threads are ordered by
// the callers, exactly as for any tensor library, and the owner is itself Send and Sync.
unsafe impl Send for Inner {}
// SAFETY: as for Send.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        match &self.owner {
            Owner::Nobody | Owner::Vector(_) | Owner::Pinned(_) => {}
            #[cfg(target_os = "linux")]
            Owner::Mapped(_) => {}
            Owner::Foreign(_) | Owner::ReadOnly(_) => foreign::quiet(self.device),
            Owner::Host => host::free(self.pointer, self.bytes),
            Owner::Allocator(allocator) => allocator::free(&**allocator, self.pointer, self.bytes),
            Owner::Device(entry) => {
                if let Some(rare) = self.rare.get() {
                    let others = rare.streams.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    device_abi::order_after(entry, self.device, &self.stream, &others);
                }
                device_abi::free(entry, self.device, self.pointer, self.bytes, &self.stream);
            }
        }
    }
}

/// A shared block of memory on one device.
///
/// ```
/// # fn main() -> keyway_dispatcher::Result<()> {
/// use keyway_dispatcher::{Device, memory::Storage};
/// let mut storage = Storage::from_vec(vec![1.0f32, 2.0]);
/// assert_eq!((storage.bytes(), storage.device(), storage.version()), (8, Device::CPU, 0));
/// assert!(storage.is_host_accessible() && storage.is_unique());
/// let shared = storage.clone();
/// assert_eq!((storage.strong_count(), shared.same_as(&storage)), (2, true));
/// assert!(storage.as_bytes_mut().is_err(), "it is held twice");
/// drop(shared);
/// storage.as_bytes_mut()?.fill(0);
/// assert_eq!(storage.to_bytes()?, [0; 8]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Storage(Shared<Inner>);

impl Storage {
    #[inline]
    fn new(pointer: NonNull<u8>, bytes: usize, device: Device, owner: Owner) -> Storage {
        let stream =
            if matches!(owner, Owner::Device(_)) { device_abi::current_stream_ref(device) } else { None };
        let storage = Storage::on(stream, pointer, bytes, device, owner);
        if allocator::in_use() {
            observer::made(&storage);
        }
        storage
    }

    #[inline(always)]
    fn on(stream: StreamRef, pointer: NonNull<u8>, bytes: usize, device: Device, owner: Owner) -> Storage {
        Storage(shared!(Inner {
            pointer: pointer,
            bytes: bytes,
            device: device,
            owner: owner,
            version: AtomicU32::new(0),
            holds: in_use::Holds::nothing(),
            stream: stream,
            rare: OnceLock::new(),
        }))
    }

    /// Allocates uninitialised memory from the plugin that serves the device; on the CPU from the chosen host allocator, if
    /// any.
    ///
    /// ```
    /// # fn main() -> keyway_dispatcher::Result<()> {
    /// use keyway_dispatcher::{Device, memory::Storage};
    /// let storage = Storage::allocate(Device::CPU, 100)?;
    /// assert_eq!(storage.bytes(), 100);
    /// assert!(storage.data_ptr().addr().is_multiple_of(64));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `OutOfMemory`, `NoDevice`, `NoSuchDevice`.
    #[inline(always)]
    pub fn allocate(device: Device, bytes: usize) -> Result<Storage> {
        // One check for streams, host allocators and observers, which few programs have.
        if device_abi::any_stream() | allocator::in_use() {
            return Storage::allocate_by_choice(device, bytes);
        }
        match device_abi::server(device.kind) {
            Some(entry) => {
                let pointer = device_abi::allocate_on(std::ptr::null_mut(), entry, device, bytes)?;
                Ok(Storage::on(None, pointer, bytes, device, Owner::Device(entry)))
            }
            None => Storage::allocate_by_host(device, bytes),
        }
    }

    #[inline(never)]
    fn allocate_by_choice(device: Device, bytes: usize) -> Result<Storage> {
        if device == Device::CPU
            && let Some(allocated) = allocator::allocate(bytes)
        {
            return allocated;
        }
        match device_abi::server(device.kind) {
            Some(entry) => {
                let pointer = device_abi::allocate(entry, device, bytes)?;
                Ok(Storage::new(pointer, bytes, device, Owner::Device(entry)))
            }
            None => Storage::allocate_by_host(device, bytes),
        }
    }

    /// Allocates if no plugin serves the device: host memory, or an error.
    fn allocate_by_host(device: Device, bytes: usize) -> Result<Storage> {
        if device != Device::CPU {
            return Err(crate::base::error::Error::NoDevice { device });
        }
        if bytes == 0 {
            return Ok(Storage::new(NonNull::<u128>::dangling().cast(), 0, device, Owner::Nobody));
        }
        Ok(Storage::new(host::allocate(bytes)?, bytes, device, Owner::Host))
    }

    /// Allocates uninitialised host memory for fast and asynchronous copies from and to `device`: page-locked
    /// ("pinned") memory if the device offers it, otherwise plain. The storage is on the CPU.
    ///
    /// # Errors
    /// `OutOfMemory`, `NoDevice`, `NoSuchDevice`, `Backend`.
    pub fn allocate_pinned(device: Device, bytes: usize) -> Result<Storage> {
        match device_abi::server(device.kind) {
            Some(entry) if bytes > 0 => {
                if let Some(block) = pinned::allocate(entry, device, bytes)? {
                    return Ok(Storage::new(
                        block.pointer(),
                        bytes,
                        Device::CPU,
                        Owner::Pinned(Box::new(block)),
                    ));
                }
                device_abi::ensure(entry, device)?;
            }
            None if device != Device::CPU => return Err(crate::base::error::Error::NoDevice { device }),
            _ => {}
        }
        Storage::allocate(Device::CPU, bytes)
    }

    /// Whether this is pinned host memory.
    pub fn is_pinned(&self) -> bool {
        matches!(self.0.owner, Owner::Pinned(_))
    }

    /// Waits for the copies that [`copy_bytes_async`] enqueued and that use this pinned memory; no effect for other memory.
    ///
    /// # Errors
    /// `Backend`: also errors of work enqueued before the copy.
    pub fn synchronize(&self) -> Result<()> {
        match &self.0.owner {
            Owner::Pinned(block) => block.synchronize(),
            _ => Ok(()),
        }
    }

    fn block(&self) -> Option<&Block> {
        match &self.0.owner {
            Owner::Pinned(block) => Some(block),
            _ => None,
        }
    }

    /// Wraps a vector without a copy.
    pub fn from_vec<T: bytes::Plain>(values: Vec<T>) -> Storage {
        let bytes = std::mem::size_of_val(values.as_slice());
        let mut owned: Box<Vec<T>> = Box::new(values);
        let pointer = NonNull::new(owned.as_mut_ptr().cast::<u8>()).unwrap_or(NonNull::dangling());
        Storage::new(pointer, bytes, Device::CPU, Owner::Vector(owned))
    }

    /// The address of the first byte; an opaque number on a device that the host cannot read.
    #[inline]
    pub fn pointer(&self) -> NonNull<u8> {
        self.0.pointer
    }

    /// Size in bytes.
    #[doc(alias = "nbytes")]
    #[inline]
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// The device of the memory.
    #[inline]
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// The version: the number of in-place changes of the content.
    #[inline]
    pub fn version(&self) -> u32 {
        self.0.version.load(Ordering::Relaxed)
    }

    /// Increments the version for one in-place change.
    #[inline]
    pub fn bump_version(&self) {
        self.0.version.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that this thread's stream uses this memory, so that it is freed after that work.
    pub(crate) fn note_use(&self) {
        if !device_abi::streams_in_use() {
            return;
        }
        match self.0.owner {
            Owner::Device(entry) => {
                let stream = device_abi::current_stream_ref_of(entry, self.0.device);
                self.keep_if_recorded(&stream);
                self.note_use_on(stream);
            }
            // Released only when the whole device is idle, so only captured work matters.
            Owner::Foreign(_) | Owner::ReadOnly(_) if self.0.device != Device::CPU => {
                self.keep_if_recorded(&device_abi::current_stream_ref(self.0.device));
            }
            _ => {}
        }
    }

    /// Retains this memory for the graph if the stream is capturing. Returns whether it is.
    fn keep_if_recorded(&self, stream: &StreamRef) -> bool {
        match stream {
            Some(handle) if handle.recording().is_active() => {
                handle.recording().keep(self.pointer().addr().get(), || Box::new(self.clone()));
                true
            }
            _ => false,
        }
    }

    fn note_use_on(&self, stream: StreamRef) {
        if device_abi::same_stream(&stream, &self.0.stream) {
            return;
        }
        let rare = self.0.rare.get_or_init(Box::default);
        let mut others = rare.streams.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !others.iter().any(|other| device_abi::same_stream(other, &stream)) {
            others.push(stream);
        }
    }

    /// The value that a higher layer attached to this memory; `None` if there is none of this type.
    pub(crate) fn extension<T: 'static>(&self) -> Option<&T> {
        self.0.rare.get()?.extension.get()
    }

    /// The value that a higher layer attached to this memory, created by `make` if there is none. `None` if there is a
    /// value of another type.
    pub(crate) fn extension_or_init<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.0.rare.get_or_init(Box::default).extension.get_or_init(make)
    }

    /// Whether this memory is uniquely owned: by one handle, and not mapped by other processes.
    pub fn is_unique(&self) -> bool {
        Shared::strong_count(&self.0) == 1 && !self.is_mapped()
    }

    /// Whether other processes may have the memory: no system but Linux supports that here.
    #[cfg(not(target_os = "linux"))]
    pub fn is_mapped(&self) -> bool {
        false
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn check_private(&self, _op: &'static str) -> Result<()> {
        Ok(())
    }

    /// Whether both handles refer to the same memory.
    #[inline]
    pub fn same_as(&self, other: &Storage) -> bool {
        Shared::ptr_eq(&self.0, &other.0)
    }
}

impl Retained for Storage {
    fn used_on(&self, entry: &'static DeviceEntry, device: Device, stream: &StreamRef) {
        match &self.0.owner {
            Owner::Device(_) => self.note_use_on(stream.clone()),
            Owner::Pinned(block) => {
                if let Err(error) = block.note_copy(entry, device, stream) {
                    crate::base::log::warn(&format!(
                        "{device}: a copy of pinned memory was waited for: {error}"
                    ));
                }
            }
            _ => {}
        }
    }
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Storage({} bytes on {})", self.bytes(), self.device())
    }
}
