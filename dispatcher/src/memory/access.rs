//! Properties of a storage, and access to its bytes from the host.

use super::copy::is_host;
use super::{Owner, Shared, Storage, host_vec, read_bytes};
use crate::base::error::{Error, Result};
use crate::base::key::Device;

impl Storage {
    /// The source of the memory: the name of a host allocator or of a plugin, `host` for the program's own allocator,
    /// `vector`, the name of a [`Blob`](super::Blob), `shared memory`, `mapped file`, or `none` for 0 bytes.
    pub fn allocator(&self) -> &str {
        match &self.0.owner {
            Owner::Nobody => "none",
            Owner::Host => "host",
            Owner::Device(entry) => entry.plugin.name,
            Owner::Pinned(block) => block.giver(),
            Owner::Allocator(allocator) => allocator.name(),
            Owner::Vector(_) => "vector",
            Owner::Foreign(owner) | Owner::ReadOnly(owner) => &owner.name,
            #[cfg(target_os = "linux")]
            Owner::Mapped(mapping) => mapping.name(),
        }
    }

    /// The number of handles of this storage at some moment during the call: one for each tensor that is not a view, and
    /// one for each handle cloned by the program. A view, or a clone of a tensor, holds the tensor.
    #[doc(alias = "use_count")]
    pub fn strong_count(&self) -> usize {
        Shared::strong_count(&self.0)
    }

    /// The address of the first byte, as [`Storage::pointer`]; an opaque number on a device that the host cannot read.
    pub fn data_ptr(&self) -> *const u8 {
        self.pointer().as_ptr()
    }

    /// Whether the memory must not be written, because it is shared with other readers, see
    /// [`Blob::from_owner`](super::Blob::from_owner).
    #[inline(always)]
    pub fn is_read_only(&self) -> bool {
        matches!(self.0.owner, Owner::ReadOnly(_))
    }

    /// Whether the host can read the memory without a copy.
    pub fn is_host_accessible(&self) -> bool {
        matches!(is_host(self), Ok(true))
    }

    /// A copy of all bytes, from any device.
    ///
    /// ```
    /// use keyway_dispatcher::memory::Storage;
    /// # fn main() -> keyway_dispatcher::Result<()> {
    /// let storage = Storage::from_vec(vec![1u16, 2]);
    /// assert_eq!(storage.to_bytes()?, [1u16.to_ne_bytes(), 2u16.to_ne_bytes()].concat());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `OutOfMemory`; the device's error.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = host_vec(self.bytes())?;
        bytes.resize(self.bytes(), 0);
        read_bytes(self, 0, &mut bytes)?;
        Ok(bytes)
    }

    /// Returns all bytes, without a copy.
    ///
    /// ```
    /// use keyway_dispatcher::memory::Storage;
    /// # fn main() -> keyway_dispatcher::Result<()> {
    /// let storage = Storage::from_vec(vec![1u8, 2]);
    /// // SAFETY: no tensor has the storage, so nobody writes to it.
    /// assert_eq!(unsafe { storage.as_bytes() }?, [1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Safety
    /// The memory must not be written while the slice is used: through any tensor, on any thread, or by work enqueued
    /// before. The caller upholds this.
    ///
    /// # Errors
    /// `NotOnHost`; the device's error.
    pub unsafe fn as_bytes(&self) -> Result<&[u8]> {
        self.quiet_for_host("as_bytes")?;
        // SAFETY: host memory of this many bytes, which lives as long as this handle; the caller excludes writers.
        Ok(unsafe { std::slice::from_raw_parts(self.data_ptr(), self.bytes()) })
    }

    /// Returns all bytes mutably if this handle is the only one: no tensor has the storage. Counts as one change.
    ///
    /// ```
    /// use keyway_dispatcher::memory::Storage;
    /// # fn main() -> keyway_dispatcher::Result<()> {
    /// let mut storage = Storage::from_vec(vec![1u8, 2]);
    /// storage.as_bytes_mut()?.reverse();
    /// assert_eq!(storage.to_bytes()?, [2, 1]);
    /// let other = storage.clone();
    /// assert!(storage.as_bytes_mut().is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `Held` if the storage is shared; `ReadOnly`, `NotOnHost`; the device's error.
    pub fn as_bytes_mut(&mut self) -> Result<&mut [u8]> {
        const OP: &str = "as_bytes_mut";
        self.check_writable(OP)?;
        self.check_private(OP)?;
        if Shared::get_mut(&mut self.0).is_none() {
            return Err(self.held(OP, 0));
        }
        self.quiet_for_host(OP)?;
        self.bump_version();
        // SAFETY: host memory of this many bytes, which only this handle reaches, and it is borrowed mutably.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.pointer().as_ptr(), self.bytes()) })
    }

    /// Sets all bytes to 0 if the host can read the memory.
    pub(crate) fn zero_for_host(&self) -> Result<()> {
        if self.bytes() == 0 || self.is_read_only() || !is_host(self)? {
            return Ok(());
        }
        self.quiet_for_host("empty")?;
        // SAFETY: writable host memory of `bytes()` bytes, which this handle keeps alive; work enqueued before has
        // finished.
        unsafe { self.pointer().as_ptr().write_bytes(0, self.bytes()) };
        Ok(())
    }

    /// Refuses memory that the host cannot read, and waits for work that still uses it.
    pub(super) fn quiet_for_host(&self, op: &'static str) -> Result<()> {
        if !is_host(self)? {
            return Err(Error::NotOnHost { op, device: self.device() });
        }
        if self.device() != Device::CPU {
            crate::device::synchronize(self.device())?;
        }
        self.synchronize()
    }

    /// Refuses read-only memory.
    #[inline(always)]
    pub(crate) fn check_writable(&self, op: &'static str) -> Result<()> {
        if self.is_read_only() { Err(self.read_only(op)) } else { Ok(()) }
    }

    #[cold]
    fn read_only(&self, op: &'static str) -> Error {
        Error::ReadOnly { op, owner: self.allocator().into() }
    }

    /// The error for a shared storage, or a shared tensor over it.
    #[cold]
    pub(crate) fn held(&self, op: &'static str, tensors: usize) -> Error {
        Error::Held { op, tensors, storages: self.strong_count() }
    }
}
